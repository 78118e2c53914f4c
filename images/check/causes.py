"""Finds in the output of programs which points of the contract explain a failure. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpiboot.images.contract import POINTS, Point, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

# What a program prints -> the point that explains it. All matches count: a failure may have several causes.
PATTERNS = (
    (r"/bin/sh.*no such file|stat /bin/sh", "shell"),
    (r"sshd: (not found|No such file)", "sshd"),
    (r"ssh: (not found|No such file|command not found)", "ssh-client"),
    (r"sshd: (Operation not permitted|operation not permitted)", "file-capabilities"),
    (r"No user exists for uid|cannot find name for user ID", "any-uid-name"),
    (r"(/root|/home/)\S*: Permission denied|Unable to load host key: \S*/\.ssh/", "home"),
    (r"Bad configuration option|terminating, \d+ bad configuration", "sshd-config"),
    (r"Bind to port \d+ .* failed|Cannot bind any address", "sshd-port"),
    (r"Connection refused|Connection timed out", "ports-agree"),
    (r"Permission denied \(publickey", "sshd-authorized-keys"),
    (r"bad ownership or modes", "sshd-strict-modes"),
    (r"because shell \S+ (does not exist|is not executable)|account is currently not available", "login-shell"),
    (r"(prted|orted|hydra_\w+|prterun|mpirun): (command )?not found", "live-path"),
    (r"error while loading shared libraries|cannot open shared object file", "libraries"),
    (r"mpirun: not found", "mpirun"),
)


def explain(evidence: str) -> tuple[Point, ...]:
    """The points that the evidence mentions, in the table's order."""
    return tuple(POINTS[point_id] for pattern, point_id in PATTERNS if re.search(pattern, evidence))


def next_faults(profile: Profile, faults: Iterable[Point]) -> tuple[Point, ...]:
    """The known faults that stop this profile next, after the user repairs the first causes."""
    stops = {point_id for _, point_id in PATTERNS}
    return tuple(point for point in faults if point.id in stops and point.needed_by and point.needed_by <= profile)
