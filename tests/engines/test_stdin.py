"""The stdin of `mpiboot run` goes to the launcher, and from there to rank 0, as with mpirun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import IO, TYPE_CHECKING

import pytest

from tests.run_table import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEGABYTES = 100
pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture(params=["docker", "local"])
def engine(request: pytest.FixtureRequest, program: Callable[[str], str]) -> str:
    if request.param == "docker":
        request.getfixturevalue("nothing_left")
    else:
        program("sshd")
    return str(request.param)


@pytest.fixture
def job_image(engine: str, request: pytest.FixtureRequest) -> str:
    return "this-machine" if engine == "local" else str(request.getfixturevalue("image")("openmpi"))


@pytest.fixture
def argv(engine: str, job_image: str, manifest: Callable[..., str]) -> Callable[[str], list[str]]:
    """The command line that runs a shell script as the launcher's command."""
    return lambda script: [*command(engine), "-f", manifest(script, job_image)]


def command(engine: str) -> list[str]:
    return [sys.executable, "-m", "mpiboot", "run", "--engine", engine, "-q"]


def done(argv: list[str], stdin: IO[bytes] | int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, stdin=stdin, capture_output=True, timeout=200)


def test_rank_0_alone_reads_it(engine: str, job_image: str, tmp_path: Path) -> None:
    if engine == "local" and not which("mpirun", path=str(Path(sys.executable).parent)):
        pytest.skip("needs an MPI in this Python's environment")
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    words = ["-n", "2", "--workers", "2", *([job_image] if engine == "docker" else []), "--", "wc", "-l"]
    with (tmp_path / "in.txt").open("rb") as stdin:
        found = done([*command(engine), *words], stdin)
    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.split()) == [b"0", b"3"]


def test_large_input_arrives_whole(argv: Callable[[str], list[str]], tmp_path: Path) -> None:
    block = os.urandom(2**20)
    (tmp_path / "large").write_bytes(block * MEGABYTES)
    expected = subprocess.run(["sha256sum", tmp_path / "large"], capture_output=True, check=True).stdout.split()[0]
    # A slow reader: what it has not read yet must wait.
    with (tmp_path / "large").open("rb") as stdin:
        found = done(argv("sleep 1; sha256sum"), stdin)
    assert found.returncode == 0, found.stderr
    assert found.stdout.split()[0] == expected


@pytest.mark.parametrize("stdin", ["/dev/null", "closed"])
def test_no_input_is_end_of_file(argv: Callable[[str], list[str]], stdin: str) -> None:
    words = argv("wc -c")
    if stdin == "closed":
        words = ["sh", "-c", 'exec "$@" <&-', "sh", *words]
    found = done(words, subprocess.DEVNULL)
    assert (found.returncode, found.stdout.split()) == (0, [b"0"]), found.stderr


def test_a_program_that_reads_nothing_ends_while_more_input_comes(argv: Callable[[str], list[str]]) -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout
        found = done(argv("exit 3"), endless.stdout)
        endless.kill()
    assert found.returncode == 3, found.stderr


def test_input_that_never_ends_does_not_hold_the_job(argv: Callable[[str], list[str]]) -> None:
    reader, writer = os.pipe()
    try:
        assert done(argv("exit 3"), reader).returncode == 3
    finally:
        os.close(reader)
        os.close(writer)


def test_a_manifest_on_stdin_leaves_nothing_for_the_program(argv: Callable[[str], list[str]]) -> None:
    *words, file = argv("wc -c")
    with Path(file).open("rb") as stdin:
        found = done([*words, "-"], stdin)
    assert (found.returncode, found.stdout.split()) == (0, [b"0"]), found.stderr


@pytest.fixture
def terminal(argv: Callable[[str], list[str]]) -> Iterator[Callable[[str], Terminal]]:
    opened: list[Terminal] = []

    def run(script: str) -> Terminal:
        opened.append(Terminal(argv(script)))
        return opened[-1]

    yield run
    for each in opened:
        each.close()


def test_lines_of_a_terminal_arrive_and_its_end_of_file(terminal: Callable[[str], Terminal]) -> None:
    shown = terminal("echo ready; read line; echo got $line; cat; echo end")
    shown.wait_for(b"ready")
    shown.type(b"some words\n")
    shown.wait_for(b"got some words")
    shown.type(b"\x04")
    shown.wait_for(b"end")
    assert shown.process.wait(60) == 0


def test_ctrl_c_in_a_terminal_ends_the_job_while_it_reads(terminal: Callable[[str], Terminal]) -> None:
    shown = terminal("echo ready; cat")
    shown.wait_for(b"ready")
    shown.type(b"\x03")
    assert shown.process.wait(60) == 130
