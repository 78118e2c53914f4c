"""The job's output on this terminal: shown as it comes, each line with its process; the launcher's stdout is ours.

Time grows with the number of bytes, and memory does not: a program may write gigabytes without a newline.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.timeline.recorder import EVENT_START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpiboot.engines.records.writer import RecordWriter
    from mpiboot.engines.timeline.recorder import EventRecorder

Stream = Literal["out", "err"]
COLOURS = (36, 33, 32, 35, 34, 31)  # the launcher's is the first
TAIL = 10  # lines
TAIL_WIDTH = 1000  # bytes of such a line
# sshd writes these lines (start, and a text that the line holds) for every job that goes well. They are shown with
# --verbose only, and `mpiboot logs` keeps them.
ROUTINE = (
    (b"Server listening on ", b""),
    (b"Accepted publickey for ", b""),
    (b"Received disconnect from ", b""),
    (b"Disconnected from ", b""),
    (b"Received signal 15;", b""),
    (b"Connection closed by ", b"[preauth]"),
    (b"Connection reset by ", b"[preauth]"),
)
# The start of a line that may have to be left out is held back until the line is complete, or as long as this.
LONGEST_HELD = 4096


@dataclass
class _Source:
    """One stream of one process, and the state of its current line."""

    held: bytes = b""  # not shown yet: the line may have to be left out
    return_held: bool = False  # the last byte was \r, and \n may follow
    decided: bool = False
    left_out: bool = False
    last: bytearray = field(default_factory=bytearray)  # the line's text, for the tail


class Output:
    """Where the output of all processes of a job goes. Any thread may call it."""

    def __init__(
        self, *, quiet: bool = False, verbose: bool = False, out: int = 1, err: int = 2,
        on_broken_pipe: Callable[[], None] = lambda: None, recorder: EventRecorder | None = None,
    ) -> None:  # fmt: skip
        """`on_broken_pipe` is called once, when our reader is gone; `recorder` takes its events out of the output."""
        self.record: RecordWriter | None = None  # also gets all output as it comes, and our own lines
        self._quiet, self._verbose = quiet, verbose
        self.width = len(LAUNCHER)  # of the prefixes
        self._fds: dict[Stream, int] = {"out": out, "err": err}
        self._terminal = {stream: os.isatty(fd) for stream, fd in self._fds.items()}
        self._coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        # Both streams may be one file or one terminal, and so share its last line.
        self._files = {stream: _identity(fd) for stream, fd in self._fds.items()}
        self._unfinished: dict[object, object] = {}  # file -> the writer of its last line, while that has no end
        self._on_broken_pipe, self._recorder = on_broken_pipe, recorder
        self._sources: dict[tuple[str, Stream], _Source] = defaultdict(_Source)
        self._tails: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=TAIL))
        self._lock = threading.RLock()
        self._open = True

    def feed(self, process: str, stream: Stream, chunk: bytes) -> None:
        """Bytes as they came."""
        with self._lock:
            if self.record:
                self.record.output(process, stream, chunk)
            source = self._sources[process, stream]
            if process == LAUNCHER and stream == "out":
                if self._recorder and chunk:
                    self._recorder.record_output(process)
                if self._plain(process, stream):
                    self._put(process, stream, [chunk], ends_line=chunk.endswith(b"\n"))
                    return
            elif stream == "err":
                # Open MPI ends some of its messages with a NUL, and grep takes a log with one for a binary file.
                chunk = chunk.replace(b"\0", b"")
            if source.return_held:
                chunk = b"\r" + chunk
            source.return_held = chunk.endswith(b"\r")
            self._show(process, stream, source, chunk[:-1] if source.return_held else chunk)

    def finish(self, process: str) -> None:
        """Nothing more comes from `process`: its last lines may have no end."""
        with self._lock:
            for stream in self._fds:
                source = self._sources.pop((process, stream), None)
                if source is None:
                    continue
                rest = source.held + b"\r" * source.return_held
                if rest and not self._is_left_out(process, stream, rest):
                    self._pieces(process, stream, [rest])
                if source.last:
                    self._keep(process, source)
                target = self._target(process, stream)
                plain = self._plain(process, target)
                if not plain and self._unfinished.get(self._files[target]) == (process, stream):
                    self._put(process, target, [b"\n"], ends_line=True, writer=(process, stream))

    def tail(self, process: str) -> list[str]:
        """The last lines of a worker."""
        with self._lock:
            return list(self._tails[process])

    def say(self, text: str) -> None:
        """A line of our own, on stderr. Errors are shown even with --quiet."""
        if self.record:
            self.record.event("Message", message=text)
        with self._lock:
            self._put("mpiboot", "err", [f"mpiboot: {text}\n".encode()], ends_line=True)

    def note(self, text: str) -> None:
        """A line that is left out with --quiet."""
        if not self._quiet:
            self.say(text)

    def _show(self, process: str, stream: Stream, source: _Source, chunk: bytes) -> None:
        shown = []
        for piece in chunk.splitlines(keepends=True):  # at \n, \r\n and \r
            if process != LAUNCHER:
                self._remember(process, source, piece)
            whole = piece.endswith((b"\n", b"\r"))
            text = source.held + piece
            source.held = b""
            if not source.decided:
                if not whole and len(text) < LONGEST_HELD and self._may_be_left_out(process, stream, text):
                    source.held = text
                    break
                source.decided, source.left_out = True, self._is_left_out(process, stream, text)
            if not source.left_out:
                shown.append(text)
            if whole:
                source.decided = False
        if shown:
            self._pieces(process, stream, shown)

    def _may_be_left_out(self, process: str, stream: Stream, begin: bytes) -> bool:
        """Whether a line that begins so may have to be left out."""
        if process == LAUNCHER:
            starts: Iterator[bytes] = iter([EVENT_START] if stream == "err" and self._recorder else [])
        else:
            starts = iter(() if self._verbose else (start for start, _ in ROUTINE))
        return any(start[: len(begin)] == begin[: len(start)] for start in starts)

    def _is_left_out(self, process: str, stream: Stream, line: bytes) -> bool:
        if process == LAUNCHER:
            return stream == "err" and self._recorder is not None and self._recorder.take(process, line)
        return self._quiet or (
            not self._verbose and any(line.startswith(start) and part in line for start, part in ROUTINE)
        )

    def _remember(self, process: str, source: _Source, piece: bytes) -> None:
        if len(source.last) < TAIL_WIDTH:
            source.last += piece[: TAIL_WIDTH - len(source.last)]
        if piece.endswith(b"\n"):
            self._keep(process, source)
        elif piece.endswith(b"\r"):  # the next text takes this one's place
            source.last.clear()

    def _keep(self, process: str, source: _Source) -> None:
        self._tails[process].append(source.last.decode(errors="replace").rstrip("\r\n"))
        source.last.clear()

    def _target(self, process: str, stream: Stream) -> Stream:
        # What the program prints is what a pipe gets; everything else is shown beside it.
        return stream if process == LAUNCHER else "err"

    def _plain(self, process: str, target: Stream) -> bool:
        """Whether lines have no prefix."""
        return self._quiet or (process == LAUNCHER and not self._terminal[target])

    def _pieces(self, process: str, stream: Stream, pieces: list[bytes]) -> None:
        """Write pieces of lines. Each begins with its process, unless it goes on with a line."""
        target = self._target(process, stream)
        ends_line = pieces[-1].endswith(b"\n")
        if self._plain(process, target):
            self._put(process, target, pieces, ends_line=ends_line)
            return
        prefix = self._prefix(process, target)
        goes_on = self._unfinished.get(self._files[target]) == (process, stream)
        found = []
        for piece in pieces:
            # A progress bar goes back to the start of its line by \r: there stands the prefix, so it is written again.
            back = self._terminal[target] and piece.endswith(b"\r") and not piece.endswith(b"\n")
            found.append(piece if goes_on else prefix + piece)
            goes_on = not piece.endswith(b"\n") and not back
        self._put(process, target, found, ends_line=ends_line, writer=(process, stream))

    def _prefix(self, process: str, target: Stream) -> bytes:
        text = f"{process:<{self.width}} |"
        if self._terminal[target] and self._coloured:
            number = 0 if process == LAUNCHER else 1 + int(process.rpartition("-")[2]) % (len(COLOURS) - 1)
            text = f"\x1b[{COLOURS[number]}m{text}\x1b[0m"
        return f"{text} ".encode()

    def _put(
        self, process: str, target: Stream, pieces: list[bytes], *, ends_line: bool, writer: object | None = None
    ) -> None:
        """Write them. A line of another writer that has no end yet is ended first."""
        file, writer = self._files[target], writer or process
        before = self._unfinished.get(file)
        if before is not None and before != writer:
            pieces = [b"\n", *pieces]
        self._unfinished[file] = None if ends_line else writer
        self._write(target, b"".join(pieces))

    def _write(self, stream: Stream, data: bytes) -> None:
        # Not through sys.stdout: what it still holds when a reader goes away becomes a second error at exit.
        try:
            while self._open and data:
                data = data[os.write(self._fds[stream], data) :]
        except OSError:
            self._open = False
            self._on_broken_pipe()


def _identity(fd: int) -> object:
    """The file behind a descriptor; the same for two descriptors of one file."""
    try:
        found = os.fstat(fd)
    except OSError:
        return fd
    return found.st_dev, found.st_ino
