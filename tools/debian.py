"""Debian packages: what is missing is installed by root, and named in one line to everybody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

POLICY = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True)
class Need:
    """Packages that are missing, and what for."""

    why: str
    packages: tuple[str, ...]
    split_off: tuple[str, ...] = ()  # in some releases a part of the others, in the rest packages of their own

    def here(self) -> tuple[str, ...]:
        """The packages as this release has them."""
        return (*self.packages, *filter(_is_known, self.split_off))


def say(text: str) -> None:
    """Tell the user about a change before it is made, or why it is not."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


def can_install() -> bool:
    """Only root of a Debian or Ubuntu machine changes it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def how_to_install(packages: Iterable[str]) -> str:
    """The command for somebody who may not, or whose system is another."""
    return f"sudo apt-get install {' '.join(packages)}" if shutil.which("apt-get") else f"install {', '.join(packages)}"


def tell(needs: Sequence[Need]) -> None:
    """Name all that is missing, and the one command that brings it, to somebody whom `install` can do nothing for."""
    if needs:
        packages = dict.fromkeys(package for need in needs for package in need.here())
        say(f"{', '.join(need.why for need in needs)}; get all of it with: {how_to_install(packages)}")


def install(need: Need) -> bool:
    """True when the packages are there afterwards. Services they bring are not started.

    Only root is told about it here: others are told by `tell`, once for everything.
    """
    if not can_install():
        return False
    say(f"{need.why}: installing the Debian packages {', '.join(need.packages)}")
    with _services_left_alone():
        # What else there is to be installed is known after the update.
        return _apt("update") and _apt("install", "-y", "--no-install-recommends", *need.here())


def _apt(*arguments: str) -> bool:
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        say(f"`{' '.join(command)}` failed with exit code {done.returncode}; it said:\n{done.stdout[-2000:]}")
    return done.returncode == 0


def _is_known(package: str) -> bool:
    """Whether this machine's lists of packages have it."""
    if shutil.which("apt-cache") is None:
        return False
    return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0


class _services_left_alone:  # noqa: N801 (reads as a verb in `with`)
    """While it lasts no package starts a daemon: nobody who runs `make test` asked for an sshd on port 22."""

    def __enter__(self) -> None:
        self.ours = not POLICY.exists()
        if self.ours:
            POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
            POLICY.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self.ours:
            POLICY.unlink(missing_ok=True)
