"""How far the log of a container has been read, so that the next connection goes on there."""

from __future__ import annotations

from datetime import UTC, datetime

LONGEST_TIME = 40  # characters; 2026-01-02T03:04:05.123456789+01:00 has 35

Time = tuple[int, int]  # seconds since 1970, and nanoseconds: a float has not enough digits


class LogPosition:
    """Takes the bytes of a log whose lines begin with a time, and gives those that are new, without the times.

    A line is known by its time and by how many lines of the same time stand before it.
    """

    def __init__(self) -> None:
        self._time: Time | None = None  # of the line that was given last
        self._lines = 0  # whole lines of that time that were given
        self._bytes = 0  # of the next line of that time
        self._reconnected()

    @property
    def since(self) -> str:
        """The time from which the next connection asks for lines, or nothing. The kubelet knows whole seconds only."""
        return datetime.fromtimestamp(self._time[0], UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if self._time else ""

    def reconnect(self) -> None:
        """The next bytes come from a new connection: up to the second before this position they come again."""
        self._reconnected()
        self._repeats = self._time is not None

    def take(self, chunk: bytes) -> bytes:
        """What is new in the bytes that came."""
        return b"".join(self._new(piece) for piece in chunk.splitlines(keepends=True) if piece)

    def _reconnected(self) -> None:
        self._repeats = False  # what comes was given before
        self._begin: bytes | None = b""  # of a line, until its time is complete; None: the line's text follows
        self._skip = 0  # bytes of this line that were given before; -1: all of it
        self._same = 0  # lines of the position's time that came on this connection
        self._untimed = False

    def _new(self, piece: bytes) -> bytes:
        """What is new in a piece of one line."""
        if self._begin is not None:
            self._begin += piece
            stamp, space, text = self._begin.partition(b" ")
            if not space and len(self._begin) < LONGEST_TIME and not self._begin.endswith(b"\n"):
                return b""
            time = _time(stamp)
            self._untimed = time is None
            piece = self._begin if time is None else text
            self._begin = None
            if time is not None:
                self._line_of(time)
        return self._text(piece)

    def _line_of(self, time: Time) -> None:
        """A line of this time begins."""
        if self._repeats and self._time is not None and time <= self._time:
            self._same += time == self._time
            at_position = time == self._time and self._same == self._lines + 1
            self._skip = self._bytes if at_position else -1
            self._repeats = not at_position
            return
        self._repeats, self._skip = False, 0
        if time != self._time:
            self._time, self._lines, self._bytes = time, 0, 0

    def _text(self, piece: bytes) -> bytes:
        ends = piece.endswith(b"\n")
        if ends:
            self._begin = b""
        if self._untimed:  # a message of the kubelet's own
            return piece
        if self._skip < 0:
            return b""
        new = piece[self._skip :]
        self._skip = max(0, self._skip - len(piece))
        if ends:
            self._lines, self._bytes = self._lines + 1, 0
        else:
            self._bytes += len(new)
        return new


def _time(text: bytes) -> Time | None:
    """The time at the beginning of a line, if it is one."""
    whole, _, rest = text.decode(errors="replace").partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    try:
        seconds = datetime.fromisoformat(whole + rest[len(digits) :])
    except ValueError:
        return None
    if seconds.tzinfo is None:
        return None
    return int(seconds.timestamp()), int(digits.ljust(9, "0")[:9]) if digits else 0
