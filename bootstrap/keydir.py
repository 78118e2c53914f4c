"""The directory in which a job's SSH keys are mounted: found, and read with an error that says what to do."""

from __future__ import annotations

import os
import stat

from mpiboot.job.errors import UserError
from mpiboot.job.keyfiles import ANY_USERS, PRIVATE

# Where manifests and images put keys when nobody says where. mpiuser is the user of our images and of the peers'.
USUAL = ("~/.ssh", "/home/mpiuser/.ssh", "/root/.ssh")


class KeysError(UserError):
    """Keys are missing, or cannot be read."""


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
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise KeysError(f"cannot read {path}: {_why(path, error)}") from error


def _why(path: str, error: Exception) -> str:
    if not isinstance(error, OSError):
        return "it is not text"
    me = f"this is user {os.geteuid()}"
    if not isinstance(error, PermissionError):
        return f"{error.strerror}; {me}"
    try:
        found = os.stat(path)
    except OSError:
        return f"{error.strerror} on its directory; {me}; mount the keys elsewhere and set MPIBOOT_SSH_DIR"
    mode = stat.S_IMODE(found.st_mode)
    return (
        f"{error.strerror}; {me}, the file belongs to user {found.st_uid} with mode {mode:04o}; "
        "mount the Secret with defaultMode 0444, or set an fsGroup and 0440"
    )
