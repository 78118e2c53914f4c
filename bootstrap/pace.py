"""How often a host that is not ready is tried again. Pure.

Quick while things happen, slow while nothing does: a thousand hosts that are hours away must cost next to nothing, two
hosts that start now must be seen within a twentieth of a second.
"""

from __future__ import annotations

# sshd counts connections that do not log in, and newer ones punish them: one a second does no harm.
GENTLE = 1.0

CONNECT_WITHIN = (1.0, 3.0)  # seconds, the first attempts and later ones: a packet lost early is soon sent again
BANNER_WITHIN = 10.0

_TRIES_A_SECOND = ((10.0, 400.0, 0.05), (60.0, 80.0, 0.25), (float("inf"), 30.0, 1.0))
_LOOKUPS_A_SECOND = ((10.0, 100.0, 0.25), (60.0, 30.0, 0.5), (float("inf"), 10.0, 1.0))


def until_next_try(waiting: int, quiet_for: float, attempts: int) -> float:
    """Seconds until a host is connected to again, when `waiting` hosts are not ready and nothing changed lately."""
    return _spread(_interval(_TRIES_A_SECOND, waiting, quiet_for), attempts)


def until_next_look_up(waiting: int, quiet_for: float, attempts: int) -> float:
    """Seconds until a name is asked for again."""
    return _spread(_interval(_LOOKUPS_A_SECOND, waiting, quiet_for), attempts)


def connect_within(attempts: int) -> float:
    return CONNECT_WITHIN[0] if attempts < 5 else CONNECT_WITHIN[1]


def _interval(table: tuple[tuple[float, float, float], ...], waiting: int, quiet_for: float) -> float:
    rate, at_least = next((rate, least) for until, rate, least in table if quiet_for < until)
    return max(at_least, waiting / rate)


def _spread(seconds: float, attempts: int) -> float:
    """Between 0.8 and 1.2 times as long, so that hosts tried together do not stay together."""
    return seconds * (0.8 + 0.4 * (attempts * 0.618 % 1.0))
