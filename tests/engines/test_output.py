"""What a terminal and what a pipe get to see of a job."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

import pytest

from mpiboot.engines.marks import Marks
from mpiboot.engines.output import Output
from mpiboot.engines.request import name_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


def test_a_terminal_sees_in_colour_who_wrote_each_line(terminals: Ends) -> None:
    output = Output(out=terminals.out, err=terminals.err)
    output.feed("launcher", "out", b"one\ntwo")
    output.feed("worker-1", "err", b"three\n")
    output.finish("launcher")
    assert terminals.text(terminals.read_out) == "\x1b[36mlauncher |\x1b[0m one\n\x1b[36mlauncher |\x1b[0m two\n"
    assert terminals.text(terminals.read_err) == "\x1b[32mworker-1 |\x1b[0m three\n"


def test_quiet_is_what_the_launcher_prints_and_nothing_else(pipes: Ends) -> None:
    output = Output(quiet=True, out=pipes.out, err=pipes.err)
    output.feed("worker-0", "err", b"sshd says\n")
    output.note("a warning")
    output.feed("launcher", "err", b"launcher says\n")
    output.say("an error")
    assert pipes.text(pipes.read_err) == "launcher says\nmpiboot: an error\n"


@pytest.mark.parametrize("verbose", [False, True])
def test_what_every_sshd_says_is_shown_only_with_verbose_and_always_kept(pipes: Ends, verbose: bool) -> None:
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


def test_a_reader_that_is_gone_is_told_once() -> None:
    read, write = os.pipe()
    os.close(read)
    told: list[bool] = []
    output = Output(out=write, broken=lambda: told.append(True))
    output.feed("launcher", "out", b"a\nb\nc\n")
    os.close(write)
    assert told == [True]


def test_events_of_the_launcher_are_taken_out_of_its_lines(pipes: Ends) -> None:
    marks = Marks(wanted=True)
    output = Output(out=pipes.out, err=pipes.err, seen=marks.seen)
    output.feed("launcher", "err", b'{"t": 4102444800.0, "event": "ready", "who": "worker-0"}\n{"t": not json\n')
    output.feed("launcher", "out", b"first\nsecond\n")
    assert pipes.text(pipes.read_err) == '{"t": not json\n'
    assert [(event.name, event.who) for event in marks.events()] == [("first rank", "launcher"), ("ready", "worker-0")]


@pytest.mark.parametrize(
    ("command", "stem"),
    [(["./pi.py", "100"], "pi"), (["python3", "-u", "/x/Train_Net.py"], "train-net"), (["./123"], "job-123"),
     (["sh", "-c", "hostname; sleep 1"], "hostname"), (["./日本"], "job"), (["./" + "x" * 80], "x" * 24)],
)  # fmt: skip
def test_jobs_are_named_after_their_program(command: list[str], stem: str) -> None:
    name = name_for(command)
    assert name.rpartition("-")[0] == stem
    assert name != name_for(command)
