"""What users of mpirun expect of a program's input, output and end: one table, for every engine.

A row is a function of a `Place`: an engine, and how `mpiboot run` starts a program there. A test module per engine
runs all of them: `@pytest.mark.parametrize("row", ROWS, ids=names)`. After each row the module's own fixtures check
that nothing of the job is left.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

WITHIN = 150.0  # seconds
IN_FOREGROUND = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
# Rank 0 shows that it runs, and ends only by a signal.
FOREVER = "echo up; exec sleep 1000"


class Terminal:
    """A command as the foreground program of a terminal of its own."""

    def __init__(self, argv: list[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_FOREGROUND, *argv],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=env, cwd=cwd,
        )  # fmt: skip
        os.close(theirs)
        self._changed = threading.Condition()
        self._is_open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while self._is_open:
                if select.select([self._ours], [], [], 0.05)[0]:
                    data = os.read(self._ours, 65536)
                    with self._changed:
                        self.shown += data
                        self._changed.notify_all()

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, text: bytes) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: text in self.shown, timeout=WITHIN), self.shown

    def hang_up(self) -> None:
        """Close the terminal, as a user closes its window."""
        self._is_open = False
        self._reader.join()
        os.close(self._ours)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._is_open:
            self.hang_up()


@dataclass(frozen=True)
class Place:
    """An engine. `words` are those of `mpiboot run` before the `--`: the engine, the image and the like."""

    name: str
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path | None = None

    def argv(self, *program: str, option: str = "-q") -> list[str]:
        return [sys.executable, "-m", "mpiboot", "run", "-n", "1", option, *self.words, "--", *program]

    def script(self, text: str) -> list[str]:
        return self.argv("sh", "-c", text)

    def done(self, argv: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, input=stdin, capture_output=True, timeout=WITHIN, env=self.env, cwd=self.cwd)


@contextlib.contextmanager
def terminal(place: Place, script: str) -> Iterator[Terminal]:
    opened = Terminal(place.script(script), place.env, place.cwd)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def piped(place: Place, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """The job with its stdout in a pipe, after rank 0 has printed `up`."""
    process = subprocess.Popen(
        place.script(script), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.env,
        cwd=place.cwd, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout
        first = process.stdout.readline()
        assert first == b"up\n", (first, process.stderr and process.stderr.read())
        yield process
    finally:
        process.kill()
        process.communicate()


# -- the rows ----------------------------------------------------------------------------------------------------------


def exit_code_is_the_program_s(place: Place) -> None:
    assert place.done(place.script("echo out; echo err >&2; exit 3")).returncode == 3


def large_exit_codes_are_no_signals(place: Place) -> None:
    found = place.done(place.script("exit 191"))
    assert found.returncode == 191
    assert b"SIG" not in found.stderr
    assert b"Traceback" not in found.stderr


def a_program_killed_by_a_signal_is_128_and_its_number(place: Place) -> None:
    assert place.done(place.script("kill -KILL $$")).returncode == 128 + signal.SIGKILL


def a_program_that_is_not_there_is_named(place: Place) -> None:
    found = place.done(place.argv("./no-such-program"))
    assert found.returncode not in {0, 1, 2}
    assert b"no-such-program" in found.stderr + found.stdout
    assert b"Traceback" not in found.stderr


def stdin_goes_to_rank_0_and_ends(place: Place) -> None:
    found = place.done(place.script("cat; echo end"), b"one\ntwo")
    assert (found.returncode, found.stdout) == (0, b"one\ntwoend\n"), found.stderr


def without_stdin_the_program_reads_end_of_file(place: Place) -> None:
    assert place.done(place.script("wc -c")).stdout.split() == [b"0"]


def output_is_unchanged_and_stderr_apart(place: Place) -> None:
    found = place.done(place.script(r"printf '10%%\r50%%\rdone\n'; printf 'beside\n' >&2"))
    assert found.stdout == b"10%\r50%\rdone\n", found.stderr
    assert b"beside" in found.stderr


def output_needs_no_end_of_line(place: Place) -> None:
    # Open MPI's mpirun joins such a text with the rank's next one, whichever stream that is for.
    assert place.done(place.script("printf 'no end'")).stdout == b"no end"


def words_arrive_unchanged(place: Place) -> None:
    words = ["$$", "$(HOME)", "a  b", "", "*", "$HOME"]
    assert place.done(place.argv("printf", "%s\n", *words)).stdout.decode() == "".join(f"{word}\n" for word in words)


def lines_can_begin_with_their_rank(place: Place) -> None:
    found = place.done(place.argv("echo", "hello", option="--tag-output"))
    assert found.stdout.startswith(b"[1,0]<stdout>: hello"), found.stderr


def a_progress_bar_is_shown_as_it_comes(place: Place) -> None:
    # The program goes on only after the terminal has shown its line without an end.
    with terminal(place, r"printf '\r50%%'; read line; printf '\r100%%\n'; exit 4") as shown:
        shown.wait_for(b"50%")
        shown.type(b"go on\n")
        shown.wait_for(b"100%")
        assert shown.process.wait(WITHIN) == 4


def ctrl_c_ends_the_job(place: Place) -> None:
    with terminal(place, FOREVER) as shown:
        shown.wait_for(b"up")
        shown.type(b"\x03")
        assert shown.process.wait(WITHIN) == 128 + signal.SIGINT


def sigterm_ends_the_job(place: Place) -> None:
    with piped(place, FOREVER) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN) == 128 + signal.SIGTERM


def a_closed_terminal_ends_the_job(place: Place) -> None:
    with terminal(place, FOREVER) as shown:
        shown.wait_for(b"up")
        shown.hang_up()
        # The signal of the terminal, or the first line that it no longer takes.
        assert shown.process.wait(WITHIN) in {128 + signal.SIGHUP, 128 + signal.SIGPIPE}


def a_reader_that_goes_away_ends_the_job(place: Place) -> None:
    with piped(place, "echo up; while :; do echo more; sleep 0.1; done") as process:
        assert process.stdout
        process.stdout.close()
        process.stdout = None
        assert process.wait(WITHIN) == 128 + signal.SIGPIPE


ROWS: tuple[Callable[[Place], None], ...] = (
    exit_code_is_the_program_s,
    large_exit_codes_are_no_signals,
    a_program_killed_by_a_signal_is_128_and_its_number,
    a_program_that_is_not_there_is_named,
    stdin_goes_to_rank_0_and_ends,
    without_stdin_the_program_reads_end_of_file,
    output_is_unchanged_and_stderr_apart,
    output_needs_no_end_of_line,
    words_arrive_unchanged,
    lines_can_begin_with_their_rank,
    a_progress_bar_is_shown_as_it_comes,
    ctrl_c_ends_the_job,
    sigterm_ends_the_job,
    a_closed_terminal_ends_the_job,
    a_reader_that_goes_away_ends_the_job,
)


def names(row: Callable[[Place], None]) -> str:
    """The identifier of a row in the list of tests."""
    return row.__name__
