"""The Debian that images start from: the registry's where one answers, else the same made from packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.containers import connect, docker_cli
from mpiboot.images.context import EPOCH
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import docker

OFFICIAL = "debian:trixie-slim"

_OFFICIAL = re.compile(r"debian:(?P<suite>[a-z]+)-slim")

# A registry that needs longer for one small answer is not one to wait for.
REGISTRY_WITHIN = 8

# What slim images leave out. Copyright files stay: they are the licences of what is inside.
LEFT_OUT = ("/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*", "/usr/share/doc/*")
KEPT = ("/usr/share/locale/locale.alias", "/usr/share/doc/*/copyright")


class BaseError(UserError):
    """There is no base to build on."""


def is_debian(image: str) -> bool:
    """Whether `image` is one that can be made from packages where no registry has it: debian:SUITE-slim."""
    return _OFFICIAL.fullmatch(image) is not None


def made(official: str) -> str:
    """The tag that such a Debian gets when it is made here."""
    return f"mpiboot/{official}"


def native(
    engine: docker.DockerClient, tell: Callable[[str], None], official: str = OFFICIAL, *, fresh: bool = False
) -> str:
    """The tag of a Debian base that the engine has now. `fresh` asks the registry, or makes it, even if it has one."""
    if not fresh:
        for tag in (official, made(official)):
            if engine.images.list(tag):
                if tag != official:
                    tell(f"base: {tag}, made here from Debian packages (no image registry answered then)")
                return tag
    if registry_answers(official):
        tell(f"base: pulling {official}")
        if _run([docker_cli(), "pull", "--quiet", official]).returncode == 0:
            return official
    tell(f"base: no image registry answers; making {made(official)} from Debian packages")
    return bootstrap(engine, official)


def registry_answers(official: str = OFFICIAL) -> bool:
    """Whether the engine gets an answer about Debian's image, soon."""
    from docker.errors import APIError
    from requests import RequestException

    impatient = connect(REGISTRY_WITHIN)
    try:
        impatient.images.get_registry_data(official)
    except (APIError, RequestException):
        return False
    finally:
        impatient.close()
    return True


def bootstrap(
    engine: docker.DockerClient, official: str = OFFICIAL, tag: str | None = None, left_out: Sequence[str] = LEFT_OUT
) -> str:
    """The tag of a Debian base made by mmdebstrap, of the engine's architecture, without the files `left_out`."""
    tag = tag or made(official)
    program = shutil.which("mmdebstrap")
    if program is None:
        raise BaseError(
            f"no image registry answers for {official}, and mmdebstrap, which makes the same from packages, is missing;"
            f" apt-get install mmdebstrap, or docker load {official}"
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
            raise BaseError(f"mmdebstrap could not make a base (exit code {packed.returncode}): {why}")
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        imported = _run([docker_cli(), "import", "--change", f"ENV PATH={path}", str(archive), tag])
        if imported.returncode != 0:
            raise BaseError(f"the engine did not take the base that was made: {last_line(imported.stderr)}")
    return tag


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def _run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
