"""Everything a launch leaves on disk is a property of one directory, private to its user."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import private
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Where our images have the ssh that comes first in PATH.
IMAGE_SHIM = "/usr/lib/mpiboot/bin/ssh"


class RunDir(NamedTuple):
    """The directory, and whether it goes when the launch ends."""

    path: str
    temporary: bool
    lock: int = -1

    @property
    def ssh_config(self) -> str:
        return f"{self.path}/ssh_config"

    @property
    def identity(self) -> str:
        return f"{self.path}/id"

    @property
    def known_hosts(self) -> str:
        return f"{self.path}/known_hosts"

    @property
    def hosts(self) -> str:
        """One empty file for each name of a worker: the shim looks there whether a host is one."""
        return f"{self.path}/hosts"

    @property
    def contacted(self) -> str:
        """A line for each time that ssh went to a worker."""
        return f"{self.path}/contacted"

    @property
    def not_verified(self) -> str:
        return f"{self.path}/hosts-not-verified"

    @property
    def live(self) -> str:
        """Lines HOST:SLOTS of the workers that are ready now, for `discover_hosts.sh`."""
        return f"{self.path}/live-hosts"

    @property
    def bin(self) -> str:
        return f"{self.path}/bin"

    def hostfile(self, dialect: str) -> str:
        return f"{self.path}/hostfile.{dialect}"


def fixed(environ: Mapping[str, str]) -> str:
    """The directory that a shell beside the launcher would look for, too; empty outside of our images."""
    chosen = environ.get("MPIBOOT_RUN_DIR", "")
    return chosen or (f"/tmp/mpiboot-{os.geteuid()}" if os.path.exists(IMAGE_SHIM) else "")  # noqa: S108 (checked when taken)


def take(environ: Mapping[str, str]) -> RunDir:
    """The fixed directory, unless another launch has it; else a fresh one."""
    path = fixed(environ)
    if path and private.own(path):
        lock = os.open(f"{path}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _lock(lock):
            return RunDir(path, temporary=False, lock=lock)
        os.close(lock)
    if environ.get("MPIBOOT_RUN_DIR"):
        raise UserError(f"MPIBOOT_RUN_DIR={path} is in use by another launch, or belongs to another user")
    return fresh()


def fresh() -> RunDir:
    return RunDir(private.fresh("launch"), temporary=True)


def leave(run: RunDir) -> None:
    """Remove it, or what of it would be wrong from now on: keys stay for shells beside the launcher."""
    if run.temporary:
        private.remove(run.path)
        return
    with suppress(FileNotFoundError):
        os.unlink(run.live)
    os.close(run.lock)


def live_list(environ: Mapping[str, str]) -> str | None:
    """The list that a running launch keeps; None if there is no such launch."""
    told = environ.get("MPIBOOT_LIVE_HOSTS", "")
    path = fixed(environ)
    if not told and path and _is_live(path):
        told = f"{path}/live-hosts"
    try:
        with open(told, encoding="utf-8") as file:
            return file.read() if os.fstat(file.fileno()).st_uid == os.geteuid() else None
    except OSError:
        return None


def _is_live(path: str) -> bool:
    """Whether a launch runs that has this directory."""
    try:
        lock = os.open(f"{path}/lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(lock)
    finally:
        os.close(lock)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
