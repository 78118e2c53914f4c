"""The job's output on this terminal: line by line, each with who wrote it; the launcher's stdout is ours."""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Literal

from mpiboot.engines.inbox import LAUNCHER

if TYPE_CHECKING:
    from collections.abc import Callable

Stream = Literal["out", "err"]
COLOURS = (36, 33, 32, 35, 34, 31)  # the launcher's is the first
TAIL = 10
# What every sshd says of every job that goes well. It is kept for `logs`, and shown with --verbose.
ROUTINE = re.compile(
    rb"Server listening on |Accepted publickey for |Received disconnect from |Disconnected from |Received signal 15;"
    rb"|Connection (closed|reset) by .* \[preauth\]"
)


class Output:
    """Where the lines of all processes of a job go. Any thread may call it."""

    def __init__(
        self, *, quiet: bool = False, verbose: bool = False, out: int = 1, err: int = 2,
        broken: Callable[[], None] = lambda: None, seen: Callable[[str, Stream, bytes], bool] = lambda *_: False,
    ) -> None:  # fmt: skip
        """`broken` is called once if nobody reads us any more; a line for which `seen` is true is not shown."""
        self._quiet, self._verbose = quiet, verbose
        self.width = len(LAUNCHER)  # of the prefixes
        self._fds: dict[Stream, int] = {"out": out, "err": err}
        self._terminal = {stream: os.isatty(fd) for stream, fd in self._fds.items()}
        self._broken, self._seen = broken, seen
        self._partial: dict[tuple[str, Stream], bytes] = {}
        self._tails: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=TAIL))
        self._lock = threading.RLock()
        self._open = True

    def feed(self, who: str, stream: Stream, chunk: bytes) -> None:
        """Bytes as they came. Whole lines are written at once, the rest when its end comes."""
        with self._lock:
            *lines, rest = (self._partial.pop((who, stream), b"") + chunk).split(b"\n")
            if rest:
                self._partial[who, stream] = rest
            for line in lines:
                self._line(who, stream, line + b"\n")

    def finish(self, who: str) -> None:
        """Nothing more comes from `who`: write lines that have no end."""
        with self._lock:
            for stream in self._fds:
                if rest := self._partial.pop((who, stream), b""):
                    self._line(who, stream, rest)

    def tail(self, who: str) -> list[str]:
        """The last lines of `who`."""
        with self._lock:
            return list(self._tails[who])

    def say(self, text: str) -> None:
        """A line of our own, on stderr. Errors are said even when the rest is quiet."""
        with self._lock:
            self._write("err", f"mpiboot: {text}\n".encode())

    def note(self, text: str) -> None:
        """A line that is left out with --quiet."""
        if not self._quiet:
            self.say(text)

    def _line(self, who: str, stream: Stream, line: bytes) -> None:
        if self._seen(who, stream, line):
            return
        self._tails[who].append(line.decode(errors="replace").rstrip("\r\n"))
        launcher = who == LAUNCHER
        if not launcher and (self._quiet or (not self._verbose and ROUTINE.match(line))):
            return
        # What the program prints is what a pipe gets; everything else needs to say whose it is.
        target: Stream = stream if launcher else "err"
        plain = self._quiet or (launcher and not self._terminal[target])
        if not plain and not line.endswith(b"\n"):
            line += b"\n"
        self._write(target, line if plain else self._prefix(who, target) + line)

    def _prefix(self, who: str, target: Stream) -> bytes:
        text = f"{who:<{self.width}} |"
        if self._terminal[target]:
            number = 0 if who == LAUNCHER else 1 + int(who.rpartition("-")[2]) % (len(COLOURS) - 1)
            text = f"\x1b[{COLOURS[number]}m{text}\x1b[0m"
        return f"{text} ".encode()

    def _write(self, stream: Stream, data: bytes) -> None:
        # Not through sys.stdout: what it still holds when a reader goes away becomes a second error at exit.
        try:
            while self._open and data:
                data = data[os.write(self._fds[stream], data) :]
        except OSError:
            self._open = False
            self._broken()
