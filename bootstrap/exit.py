"""How a launch ended becomes an exit code and a last line. Pure.

The command's own code stays what it is; 128 + N for a signal, 74 for data that could not be moved, 124 out of time,
125 ended by mpiboot, 126 and 127 for a command that cannot be run, as shells and `timeout` have it.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiboot.bootstrap.host import Host
    from mpiboot.bootstrap.picture import Picture

NO_DATA = 74  # EX_IOERR of sysexits.h
OUT_OF_TIME = 124
ENDED_BY_US = 125
_LISTED = 40


def by_signal(number: int) -> int:
    return 128 + number


def out_of_time(picture: Picture, now: float, limit: float) -> str:
    """The report of a wait that ended without enough workers: a line for each that is missing."""
    waiting, total = picture.waiting(), len(picture.hosts)
    elapsed = now - picture.started
    late = f"{len(waiting)} of {total} workers not ready after {elapsed:.1f} s"
    lines = [f"{late} (limit {limit:g} s, --init-timeout); exit {OUT_OF_TIME}"]
    lines += [_line(host, picture) for host in waiting[:_LISTED]]
    if len(waiting) > _LISTED:
        lines.append(f"  and {len(waiting) - _LISTED} more")
    if picture.ready_count:
        lines.append(f"  the other {picture.ready_count} {'is' if picture.ready_count == 1 else 'are'} ready")
    return "\n".join(lines)


def _line(host: Host, picture: Picture) -> str:
    place = host.place
    where = f" at {place.address}{f':{place.port}' if place.port else ''}" if place else ""
    named = f"; the name resolved after {host.named_after:.1f} s" if host.named_after else ""
    tries = host.attempts + host.lookups
    since = f", {tries} {'try' if tries == 1 else 'tries'}" if tries else ""
    counted = ""
    if host.clock_from is not None and host.clock_from > picture.started + 1:
        counted = f"; its container ran since {host.clock_from - picture.started:.0f} s after the start"
    return f"  {host.name}{where}  {host.why_not}{since}{named}{counted}"


def of_command(words: Sequence[str], code: int) -> str:
    """The last line about a command that failed; empty if it did not."""
    if code == 0:
        return ""
    name = words[0].rpartition("/")[2]
    if code > 128 and code - 128 in signal.valid_signals():
        return f"{name} ended by {signal.Signals(code - 128).name} (exit {code})"
    return f"{name} exited with code {code}"
