"""What a launcher says while it waits: one line when something changed, or one live line on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpiboot.bootstrap.host import Host
    from mpiboot.bootstrap.picture import Picture

AT_MOST_EVERY = 1.0
FRAMES_EVERY = 0.1
_NAMED = 4


class Progress:
    """Says the same thing once, and nothing more often than once a second. A job that starts at once says nothing."""

    def __init__(self, picture: Picture, say: Callable[[str], None], live: Callable[[str], None] | None) -> None:
        self._picture, self._say, self._live = picture, say, live
        self._said, self._next_at = "", picture.started + AT_MOST_EVERY

    def tick(self, now: float) -> float:
        """Say what is new, if it is time; returns when to be called again if nothing happens."""
        picture = self._picture
        if self._live is not None:
            self._live(line(picture, now))
            return now + FRAMES_EVERY
        if now < self._next_at:
            return self._next_at
        text = f"{len(picture.ready())} {waiting_for(picture.waiting())}"
        if text == self._said:
            return float("inf")
        self._said, self._next_at = text, now + AT_MOST_EVERY
        self._say(line(picture, now))
        return self._next_at


def line(picture: Picture, now: float) -> str:
    """How many are ready, since when it waits, and for whom."""
    ready, total = picture.ready_count, len(picture.hosts)
    of = f"{ready}/{total} workers ready after {now - picture.started:.1f} s"
    enough = f" (at least {picture.needed} needed)" if picture.needed < total else ""
    waiting = picture.waiting()
    return f"{of}{enough}; waiting for {waiting_for(waiting)}" if waiting else of + enough


def waiting_for(hosts: Sequence[Host]) -> str:
    """The first few by their short names, each with its reason; the others as a number."""
    named = ", ".join(f"{short(host.name)} ({host.why_not})" for host in hosts[:_NAMED])
    return f"{named} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else named


def short(name: str) -> str:
    first = name.partition(".")[0]
    return name if first.isdigit() or ":" in name else first
