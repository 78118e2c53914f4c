"""Debian packages: what is missing is installed by root, and named in one line to everybody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")


def say(text: str) -> None:
    """Tell the user about a change before it is made, or why it is not."""
    print(f"setup: {text}", file=sys.stderr, flush=True)


def can_install() -> bool:
    """Only root of a Debian or Ubuntu machine changes it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def how_to_install(packages: list[str]) -> str:
    """The command for somebody who may not, or whose system is another."""
    return f"sudo apt-get install {' '.join(packages)}" if shutil.which("apt-get") else f"install {', '.join(packages)}"


def install(packages: list[str], why: str) -> bool:
    """True when the packages are there afterwards. Services they bring are not started."""
    if not can_install():
        say(f"{why}; get it with: {how_to_install(packages)}")
        return False
    say(f"{why}: installing the Debian packages {', '.join(packages)}")
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _services_left_alone():
        for command in ([*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", *packages]):
            done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                say(f"`{' '.join(command)}` failed with exit code {done.returncode}; it said:\n{done.stdout[-2000:]}")
                return False
    return True


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
