"""Which lines of a launcher were shown as they came, so that its log, read from its start, gives only the others."""

from __future__ import annotations

from collections import Counter, deque

WINDOW = 1000  # lines: by so many the order of stdout and stderr may differ between the two


class ShownLines:
    """Counts what came over an attached connection; then filters the log, which has both streams in one."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lines = 0
        self._last: deque[bytes] = deque(maxlen=2 * WINDOW)
        self._open: dict[int, bytes] = {}  # by stream: of a line that has no end yet

    def add(self, stream: int, data: bytes) -> None:
        """Something was shown."""
        self.bytes += len(data)
        *lines, rest = (self._open.get(stream, b"") + data).split(b"\n")
        self._open[stream] = rest
        self._lines += len(lines)
        self._last.extend(lines)

    def rest(self) -> LogFilter:
        """A filter for the log."""
        return LogFilter(max(0, self._lines - WINDOW), Counter(self._last), list(self._open.values()))


class LogFilter:
    """Takes a log from its start, and gives what was not shown."""

    def __init__(self, passed_over: int, shown: Counter[bytes], begun: list[bytes]) -> None:
        self._pass_over, self._shown, self._window = passed_over, shown, 3 * WINDOW
        self._begun = [text for text in begun if text]
        self._open = b""

    def take(self, data: bytes) -> bytes:
        """What is new in the bytes of the log."""
        *lines, self._open = (self._open + data).split(b"\n")
        return b"".join(self._new(line + b"\n") for line in lines)

    def end(self) -> bytes:
        """The log's last line, if it has no end."""
        line, self._open = self._open, b""
        return self._new(line) if line else b""

    def _new(self, line: bytes) -> bytes:
        if self._pass_over:
            self._pass_over -= 1
            return b""
        if self._window:
            self._window -= 1
            if self._shown[line.rstrip(b"\n")]:
                self._shown[line.rstrip(b"\n")] -= 1
                return b""
            for text in self._begun:
                if line.startswith(text):
                    self._begun.remove(text)
                    return line[len(text) :]
        return line
