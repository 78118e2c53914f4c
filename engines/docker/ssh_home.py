"""The directory where the SSH of an image's own user looks for its keys: in the home that its /etc/passwd names."""

from __future__ import annotations

import io
import secrets
import tarfile
import time
from typing import TYPE_CHECKING

from docker.errors import APIError

from mpiboot.engines.docker.labels import FILLER, RunLabels

if TYPE_CHECKING:
    from docker import APIClient

    from mpiboot.engines.docker.pull import Image

LARGEST_PASSWD = 2**20


def of_user(api: APIClient, image: Image) -> str | None:
    """The user's directory of keys; None if the image runs as root, or has no such user."""
    user = image.user.partition(":")[0]
    if image.runs_as_root:
        return None
    home = _home(_passwd(api, image.name), user)
    return f"{home.rstrip('/')}/.ssh" if home.startswith("/") else None


def _home(passwd: str, user: str) -> str:
    for line in passwd.splitlines():
        name, _, uid, _, _, home, *_ = [*line.split(":"), *[""] * 6]
        if user in {name, uid}:
            return home
    return ""


def _passwd(api: APIClient, image: str) -> str:
    """The image's /etc/passwd, by way of a container that never starts; empty if there is none."""
    # `mpiboot delete` finds the container by its labels if this process is killed here.
    run = RunLabels("home-lookup", secrets.token_hex(4), time.time(), 0)
    container = None
    try:
        options = api.create_host_config(network_mode="none")
        container = api.create_container(
            image, entrypoint=["/never/started"], labels=run.of(FILLER, 0), host_config=options
        )["Id"]
        chunks, _ = api.get_archive(container, "/etc/passwd")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            file = tar.extractfile("passwd")
            return file.read(LARGEST_PASSWD).decode(errors="replace") if file else ""
    except (APIError, KeyError, tarfile.TarError):
        return ""
    finally:
        if container:
            api.remove_container(container, v=True, force=True)
