"""The output of a job on a terminal and in a pipe."""

from __future__ import annotations

import os
import re
import select
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from mpiboot.engines.output import Output
from mpiboot.engines.request import name_for
from mpiboot.engines.timeline.recorder import EventRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpiboot.engines.output import Stream

STREAMS: tuple[Stream, ...] = ("out", "err")


class Ends:
    """Where an output goes: pipes, or terminals."""

    def __init__(self, pair: Callable[[], tuple[int, int]]) -> None:
        self.read_out, self.out = pair()
        self.read_err, self.err = pair()

    def text(self, fd: int) -> str:
        """All there is; a terminal gives one line a read."""
        found = b""
        while select.select([fd], [], [], 0)[0]:
            found += os.read(fd, 65536)
        return found.decode().replace("\r\n", "\n")

    def close(self) -> None:
        for fd in (self.read_out, self.out, self.read_err, self.err):
            os.close(fd)


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def pipes() -> Iterator[Ends]:
    ends = Ends(os.pipe)
    yield ends
    ends.close()


@pytest.fixture
def terminals() -> Iterator[Ends]:
    ends = Ends(os.openpty)
    yield ends
    ends.close()


def test_a_pipe_gets_the_launcher_s_stdout_as_it_is(pipes: Ends) -> None:
    output = Output(out=pipes.out, err=pipes.err)
    output.feed("launcher", "out", b"pi = ")
    output.feed("launcher", "out", b"3.14\nrest")
    output.feed("worker-0", "out", b"from a worker\n")
    output.feed("launcher", "err", b"from the launcher\n")
    output.finish("launcher")
    assert pipes.text(pipes.read_out) == "pi = 3.14\nrest"
    assert pipes.text(pipes.read_err) == "worker-0 | from a worker\nfrom the launcher\n"


def test_on_a_terminal_each_line_begins_with_its_process_in_colour(terminals: Ends) -> None:
    output = Output(out=terminals.out, err=terminals.err)
    output.feed("launcher", "out", b"one\ntwo")
    output.feed("worker-1", "err", b"three\n")
    output.finish("launcher")
    assert terminals.text(terminals.read_out) == "\x1b[36mlauncher |\x1b[0m one\n\x1b[36mlauncher |\x1b[0m two\n"
    assert terminals.text(terminals.read_err) == "\x1b[32mworker-1 |\x1b[0m three\n"


def test_output_without_a_newline_is_shown_as_it_comes(pipes: Ends, terminals: Ends) -> None:
    for ends, prefix in ((pipes, ""), (terminals, "\x1b[36mlauncher |\x1b[0m ")):
        output = Output(out=ends.out, err=ends.err)
        output.feed("launcher", "out", b"10 %")
        assert ends.text(ends.read_out) == f"{prefix}10 %"
        output.feed("launcher", "out", b", 20 %")
        assert ends.text(ends.read_out) == ", 20 %"
        output.finish("launcher")


def test_a_progress_bar_is_drawn_behind_its_prefix(terminals: Ends) -> None:
    output = Output(out=terminals.out, err=terminals.err)
    for chunk in (b"\r10 %", b"\r20 %\r", b"30 %", b"\r", b"\n"):
        output.feed("launcher", "err", chunk)
    prefix = "\x1b[36mlauncher |\x1b[0m "
    shown = terminals.text(terminals.read_err)
    assert shown == f"{prefix}\r{prefix}10 %\r{prefix}20 %\r{prefix}30 %\r\n"


def test_a_line_without_an_end_is_ended_before_another_process_writes(terminals: Ends, pipes: Ends) -> None:
    output = Output(out=pipes.out, err=terminals.err)
    output.feed("worker-0", "err", b"10 %")
    output.feed("worker-1", "err", b"other\n")
    output.feed("worker-0", "err", b", 20 %")
    output.say("ours")
    output.feed("worker-0", "err", b"30 %\n")
    lines = ["worker-0 | 10 %", "worker-1 | other", "worker-0 | , 20 %", "mpiboot: ours", "worker-0 | 30 %", ""]
    assert re.sub(r"\x1b\[[0-9]+m", "", terminals.text(terminals.read_err)) == "\n".join(lines)


def test_gigabytes_without_a_newline_are_not_kept() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    output = Output(out=nowhere, err=nowhere, recorder=EventRecorder(wanted=True))
    tracemalloc.start()
    try:
        for begin in (b"", b'{"t": ', b"Accepted publickey for "):
            for who in ("launcher", "worker-0"):
                for stream in STREAMS:
                    output.feed(who, stream, begin)
                    for _ in range(160):
                        output.feed(who, stream, b"x" * 65536)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
        os.close(nowhere)


def test_a_line_that_comes_in_pieces_is_filtered_as_a_whole(pipes: Ends) -> None:
    recorder = EventRecorder(wanted=True)
    output = Output(out=pipes.out, err=pipes.err, recorder=recorder)
    for byte in b'{"t": 4102444800.0, "event": "ready"}\n{"t": 1}\nAccepted publickey for launchers\n':
        output.feed("launcher", "err", bytes([byte]))
    for byte in b"Accepted publickey for mpiuser\r\nAccepted nothing\r\n":
        output.feed("worker-0", "err", bytes([byte]))
    assert [event.name for event in recorder.events()] == ["ready"]
    kept = '{"t": 1}\nAccepted publickey for launchers\nworker-0 | Accepted nothing\r\n'
    assert os.read(pipes.read_err, 65536).decode() == kept


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(
    terminals: Ends, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    output = Output(out=terminals.out, err=terminals.err)
    output.feed("launcher", "out", b"one\n")
    assert terminals.text(terminals.read_out) == "launcher | one\n"


def test_a_nul_byte_does_not_make_a_log_binary(pipes: Ends) -> None:
    output = Output(out=pipes.out, err=pipes.err)
    output.feed("launcher", "err", b"mpirun says\n\0")
    output.feed("launcher", "out", b"\0\1\2")
    assert pipes.text(pipes.read_err) == "mpirun says\n"
    assert pipes.text(pipes.read_out) == "\0\1\2"


def test_quiet_is_what_the_launcher_prints_and_nothing_else(pipes: Ends) -> None:
    output = Output(quiet=True, out=pipes.out, err=pipes.err)
    output.feed("worker-0", "err", b"sshd says\n")
    output.note("a warning")
    output.feed("launcher", "err", b"launcher says\n")
    output.say("an error")
    assert pipes.text(pipes.read_err) == "launcher says\nmpiboot: an error\n"


@pytest.mark.parametrize("verbose", [False, True])
def test_routine_messages_of_sshd_are_shown_only_with_verbose_and_always_kept(pipes: Ends, verbose: bool) -> None:
    routine, trouble = "Accepted publickey for mpiuser from 10.0.0.1", "Failed publickey for mpiuser from 10.0.0.1"
    output = Output(verbose=verbose, out=pipes.out, err=pipes.err)
    output.feed("worker-0", "err", f"{routine}\n{trouble}\n".encode())
    output.feed("launcher", "err", f"{routine}\n".encode())
    shown = [routine, trouble] if verbose else [trouble]
    assert pipes.text(pipes.read_err) == "".join(f"worker-0 | {line}\n" for line in shown) + f"{routine}\n"
    assert output.tail("worker-0") == [routine, trouble]


def test_the_last_lines_of_each_are_kept(pipes: Ends) -> None:
    output = Output(out=pipes.out, err=pipes.err)
    output.feed("worker-0", "err", b"".join(b"%d\n" % number for number in range(50)))
    assert output.tail("worker-0") == [str(number) for number in range(40, 50)]
    assert output.tail("worker-1") == []


def test_a_reader_that_is_gone_is_reported_once() -> None:
    read, write = os.pipe()
    os.close(read)
    calls: list[bool] = []
    output = Output(out=write, on_broken_pipe=lambda: calls.append(True))
    output.feed("launcher", "out", b"a\nb\nc\n")
    os.close(write)
    assert calls == [True]


def test_events_of_the_launcher_are_taken_out_of_its_lines(pipes: Ends) -> None:
    recorder = EventRecorder(wanted=True)
    output = Output(out=pipes.out, err=pipes.err, recorder=recorder)
    output.feed("launcher", "err", b'{"t": 4102444800.0, "event": "ready", "who": "worker-0"}\n{"t": not json\n')
    output.feed("launcher", "out", b"first\nsecond\n")
    assert pipes.text(pipes.read_err) == '{"t": not json\n'
    events = [(event.name, event.process) for event in recorder.events()]
    assert events == [("first rank", "launcher"), ("ready", "worker-0")]


@pytest.mark.parametrize(
    ("command", "stem"),
    [(["./pi.py", "100"], "pi"), (["python3", "-u", "/x/Train_Net.py"], "train-net"), (["./123"], "job-123"),
     (["sh", "-c", "hostname; sleep 1"], "hostname"),
     (["horovodrun", "-np", "4", "python", "train.py"], "train"),
     (["./日本"], "job"), (["./" + "x" * 80], "x" * 24)],
)  # fmt: skip
def test_jobs_are_named_after_their_program(command: list[str], stem: str) -> None:
    name = name_for(command)
    assert name.rpartition("-")[0] == stem
    assert name != name_for(command)
