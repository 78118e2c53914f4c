"""Finds the directory in which a job's SSH keys are mounted, and reads them. Errors say what to do."""

from __future__ import annotations

import os
import stat

from mpiboot.bootstrap.files import read_text
from mpiboot.job.errors import UserError
from mpiboot.job.names import ANY_USERS, PRIVATE

# Where manifests and images put keys by default. mpiuser is the user in our images and in those of mpi-operator.
USUAL = ("~/.ssh", "/home/mpiuser/.ssh", "/root/.ssh")


def find(explicit: str, wanted: str) -> str:
    """The directory: `explicit`, or the first usual one that holds `wanted`; empty if there is none."""
    if explicit:
        return explicit
    places = [os.path.expanduser(path) for path in USUAL]
    return next((path for path in places if os.path.lexists(f"{path}/{wanted}")), "")


def read(directory: str, name: str) -> str | None:
    """The text of a key file, or None if it does not exist."""
    path = f"{directory}/{name}"
    if name == PRIVATE and not os.access(path, os.R_OK) and os.access(f"{directory}/{ANY_USERS}", os.R_OK):
        path = f"{directory}/{ANY_USERS}"
    try:
        return read_text(path, strict=True)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {_why(path, error)}") from error


def _why(path: str, error: Exception) -> str:
    if not isinstance(error, OSError):
        return "it is not text"
    me = f"this is user {os.geteuid()}"
    if not isinstance(error, PermissionError):
        return f"{error.strerror}; {me}"
    try:
        status = os.stat(path)
    except OSError:
        return f"{error.strerror} on its directory; {me}; mount the keys elsewhere and set MPIBOOT_SSH_DIR"
    mode = stat.S_IMODE(status.st_mode)
    return (
        f"{error.strerror}; {me}, the file belongs to user {status.st_uid} with mode {mode:04o}; "
        "mount the Secret with defaultMode 0444, or set an fsGroup and 0440"
    )
