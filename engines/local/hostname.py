"""A host name of its own for a process and what descends from it, as far as the kernel lets this user.

Open MPI takes ranks with one host name for ranks of one host. Workers that all have this machine's name, and are hosts
of their own by the hostfile, then disagree about who shares memory with whom: collective operations hang.
"""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
HOSTS = "/etc/hosts"


def take(name: str, hosts: str) -> bool:
    """Take the host name, with `hosts` in the place of /etc/hosts so that it resolves. False: the kernel forbids it."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.geteuid(), os.getegid()
    needed = CLONE_NEWUTS | CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)
    if libc.unshare(needed) != 0:
        return False
    try:
        if uid:
            # The same user as before, and nobody else: files keep their owners.
            Path("/proc/self/setgroups").write_text("deny", "ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", "ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", "ascii")
        socket.sethostname(name)
    except OSError:
        return False
    # Mounts of the machine still arrive here (home directories on demand), ours stay here. Without them a program that
    # looks its own name up fails; most never do.
    libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None)
    libc.mount(os.fsencode(hosts), os.fsencode(HOSTS), None, MS_BIND, None)
    return True
