"""The Debian base image: docker pulls it where a registry answers; otherwise mmdebstrap makes it from packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.containers.client import connect, docker_cli
from mpiboot.images.build.context import EPOCH
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import docker

OFFICIAL = "debian:trixie-slim"

_OFFICIAL = re.compile(r"debian:(?P<suite>[a-z]+)-slim")

# Seconds. A registry that needs longer for one small answer is too slow to pull from.
REGISTRY_WITHIN = 8

# Slim images leave these files out. Copyright files stay: they hold the licences of the packages.
LEFT_OUT = ("/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*", "/usr/share/doc/*")
KEPT = ("/usr/share/locale/locale.alias", "/usr/share/doc/*/copyright")


class BaseError(UserError):
    """mpiboot can neither pull nor make a base image."""


def is_debian(image: str) -> bool:
    """Whether mmdebstrap can make `image` from packages: debian:SUITE-slim."""
    return _OFFICIAL.fullmatch(image) is not None


def local_tag(official: str) -> str:
    """The tag of such a Debian when mpiboot makes it on this machine."""
    return f"mpiboot/{official}"


def native(
    engine: docker.DockerClient, log: Callable[[str], None], official: str = OFFICIAL, *, fresh: bool = False
) -> str:
    """Give the engine a Debian base and return its tag. `fresh` pulls or makes it even if the engine has one."""
    if not fresh:
        for tag in (official, local_tag(official)):
            if engine.images.list(tag):
                if tag != official:
                    log(f"base: {tag}; mpiboot made it here from Debian packages, because no image registry answered")
                return tag
    if registry_answers(official):
        log(f"base: docker pulls {official}")
        if _run([docker_cli(), "pull", "--quiet", official]).returncode == 0:
            return official
    log(f"base: no image registry answers; mpiboot makes {local_tag(official)} from Debian packages")
    return bootstrap(engine, official)


def registry_answers(official: str = OFFICIAL) -> bool:
    """Whether a registry answers the engine about Debian's image within REGISTRY_WITHIN seconds."""
    from docker.errors import APIError
    from requests import RequestException

    engine = connect(REGISTRY_WITHIN)
    try:
        engine.images.get_registry_data(official)
    except (APIError, RequestException):
        return False
    finally:
        engine.close()
    return True


def bootstrap(
    engine: docker.DockerClient, official: str = OFFICIAL, tag: str | None = None, left_out: Sequence[str] = LEFT_OUT
) -> str:
    """Make a Debian base with mmdebstrap, for the engine's architecture, without the files `left_out`; its tag."""
    tag = tag or local_tag(official)
    program = shutil.which("mmdebstrap")
    if program is None:
        raise BaseError(
            f"no image registry answers for {official}, and the program mmdebstrap, which makes it from packages, is"
            f" missing; install it (apt-get install mmdebstrap), or load {official} into the engine (docker load)"
        )
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(engine.info()["Architecture"], "amd64")
    with tempfile.TemporaryDirectory(prefix="mpiboot-base-") as folder:
        archive = Path(folder) / "base.tar"
        packed = _run(
            [
                program,
                "--variant=minbase",
                f"--architectures={architecture}",
                *[f"--dpkgopt=path-exclude={path}" for path in left_out],
                *[f"--dpkgopt=path-include={path}" for path in KEPT],
                '--aptopt=Acquire::Languages "none"',
                official.removeprefix("debian:").removesuffix("-slim"),
                str(archive),
                *filter(None, [os.environ.get("MPIBOOT_DEBIAN_MIRROR")]),
            ],
            SOURCE_DATE_EPOCH=str(EPOCH),
        )
        if packed.returncode != 0:
            why = last_line(packed.stderr)
            raise BaseError(f"mmdebstrap did not make a base image (exit code {packed.returncode}): {why}")
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        imported = _run([docker_cli(), "import", "--change", f"ENV PATH={path}", str(archive), tag])
        if imported.returncode != 0:
            raise BaseError(f"the engine did not import the base image: {last_line(imported.stderr)}")
    return tag


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def _run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
