"""The directory of a launch: all its files, private to its user."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import files
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.mpi import HostfileForm

# The ssh that comes first in PATH in our images.
IMAGE_SHIM = "/usr/lib/mpiboot/bin/ssh"
# In our images /job/hostfile, where DeepSpeed looks for hosts, is a link to this file, which any user can write.
JOB_HOSTFILE = "/tmp/mpiboot-hostfile"  # noqa: S108 (nothing reads it here)


class RunDir(NamedTuple):
    """The directory. `temporary`: it is removed when the launch ends."""

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
        """An empty file for each name of a worker, by which the shim knows workers."""
        return f"{self.path}/hosts"

    @property
    def contacted(self) -> str:
        """A line for each ssh call to a worker."""
        return f"{self.path}/contacted"

    @property
    def not_verified(self) -> str:
        return f"{self.path}/hosts-not-verified"

    @property
    def live(self) -> str:
        """Lines HOST:SLOTS of the workers that are ready now, for `discover_hosts.sh`."""
        return f"{self.path}/live-hosts"

    @property
    def starts(self) -> str:
        """Lines HOST NUMBER, beside the live hosts: how often a worker was started again (`pauses.patch` reads it)."""
        return f"{self.path}/worker-starts"

    @property
    def job_hostfile(self) -> str:
        """A hostfile with slots under a name that others know; empty outside of our images."""
        return "" if self.temporary or not os.path.exists(IMAGE_SHIM) else JOB_HOSTFILE

    @property
    def bin(self) -> str:
        return f"{self.path}/bin"

    def hostfile(self, form: HostfileForm) -> str:
        return f"{self.path}/hostfile.{form.name}"


def fixed(environ: Mapping[str, str]) -> str:
    """The directory that a shell in the same container also uses; empty outside of our images."""
    chosen = environ.get("MPIBOOT_RUN_DIR", "")
    return chosen or (f"/tmp/mpiboot-{os.geteuid()}" if os.path.exists(IMAGE_SHIM) else "")  # noqa: S108 (checked when taken)


def take(environ: Mapping[str, str]) -> RunDir:
    """The fixed directory, or a new one if another launch uses it."""
    path, chosen = fixed(environ), bool(environ.get("MPIBOOT_RUN_DIR"))
    if path and not files.is_plain_path(path):
        raise UserError(f"MPIBOOT_RUN_DIR={path} must be an absolute path without blanks, quotes and '%'")
    try:
        if path and files.own_directory(path):
            lock = os.open(f"{path}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _lock(lock):
                return RunDir(path, temporary=False, lock=lock)
            os.close(lock)
    except OSError:
        if chosen:  # a new directory may be possible elsewhere
            raise
    if chosen:
        raise UserError(f"MPIBOOT_RUN_DIR={path} is in use by another launch, belongs to another user, or is a file")
    return fresh()


def fresh() -> RunDir:
    return RunDir(files.fresh_directory("launch"), temporary=True)


def leave(run: RunDir) -> None:
    """Remove the directory. In a fixed one, remove only the live list: shells in the container still use the keys."""
    if run.temporary:
        files.remove_directory(run.path)
        return
    with suppress(FileNotFoundError):
        os.unlink(run.live)
    os.close(run.lock)


def live_list(environ: Mapping[str, str]) -> str | None:
    """The list of a running launch; None if no launch runs."""
    path_of_list = environ.get("MPIBOOT_LIVE_HOSTS", "")
    path = fixed(environ)
    if not path_of_list and path and _is_live(path):
        path_of_list = f"{path}/live-hosts"
    try:
        with open(path_of_list, encoding="utf-8", errors="replace") as file:
            return file.read(files.MOST) if os.fstat(file.fileno()).st_uid == os.geteuid() else None
    except OSError:
        return None


def _is_live(path: str) -> bool:
    """Whether a running launch uses this directory."""
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
