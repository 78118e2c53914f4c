"""A host name of its own for a process and its descendants, if the kernel lets this user set one.

Open MPI takes ranks with one host name for ranks of one host. If all workers have the name of this machine, while the
hostfile lists them as several hosts, then ranks disagree about which of them share memory, and collectives hang.
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
            # The same user as before, and no other: files keep their owners.
            Path("/proc/self/setgroups").write_text("deny", "ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", "ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", "ascii")
        socket.sethostname(name)
    except OSError:
        return False
    # Mounts of the machine still appear here (home directories on demand), and ours do not appear there. If this mount
    # fails, only a program that looks up its own name fails; most never do.
    libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None)
    libc.mount(os.fsencode(hosts), os.fsencode(HOSTS), None, MS_BIND, None)
    return True
