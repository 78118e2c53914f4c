"""Debian packages: root installs what is missing; other users get one line that names it."""

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
    """Packages that are missing, and what needs them."""

    why: str
    packages: tuple[str, ...]
    split_off: tuple[str, ...] = ()  # parts of the others in some Debian releases, separate packages in the rest

    def here(self) -> tuple[str, ...]:
        """The packages to install on this machine's Debian release."""
        return (*self.packages, *filter(_is_known, self.split_off))


def log(text: str) -> None:
    """Print a line about a change to the machine before it is made, or about why it is not made."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


def can_install() -> bool:
    """Whether set-up may install packages: only as root, and only on Debian or Ubuntu."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def how_to_install(packages: Iterable[str]) -> str:
    """The command that a user runs who is not root, or whose system is not Debian."""
    return f"sudo apt-get install {' '.join(packages)}" if shutil.which("apt-get") else f"install {', '.join(packages)}"


def print_missing(needs: Sequence[Need]) -> None:
    """Print all that is missing and the one command that installs it, for users who are not root."""
    if needs:
        packages = dict.fromkeys(package for need in needs for package in need.here())
        log(f"{', '.join(need.why for need in needs)}; install all of it with: {how_to_install(packages)}")


def install(need: Need) -> bool:
    """True when the packages are installed afterwards. Their services are not started.

    This prints only what root does. For other users `print_missing` prints everything once.
    """
    if not can_install():
        return False
    log(f"{need.why}: installing the Debian packages {', '.join(need.packages)}")
    with _no_service_starts():
        # `here` asks for the packages of this release, which are known only after the update.
        return _apt("update") and _apt("install", "-y", "--no-install-recommends", *need.here())


def _apt(*arguments: str) -> bool:
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        log(f"`{' '.join(command)}` failed with exit code {done.returncode}; its output:\n{done.stdout[-2000:]}")
    return done.returncode == 0


def _is_known(package: str) -> bool:
    """Whether apt knows the package on this machine."""
    if shutil.which("apt-cache") is None:
        return False
    return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0


class _no_service_starts:  # noqa: N801 (reads as a verb in `with`)
    """Inside this block no package starts its daemon: a user of `make test` did not ask for an sshd on port 22."""

    def __enter__(self) -> None:
        self.ours = not POLICY.exists()
        if self.ours:
            POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
            POLICY.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self.ours:
            POLICY.unlink(missing_ok=True)
