"""Runs mpiboot commands, and waits for their output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE = 60.0  # seconds: only ever used up by a test that fails


def eventually(what: Callable[[], object], message: str = "it did not happen", patience: float = PATIENCE) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + patience
    while not what():
        assert time.monotonic() < deadline, message
        time.sleep(0.02)


def state(pid: int) -> str:
    """The letter of a process's state, as Z for one that ended and was not collected; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@dataclass
class Process:
    """A running mpiboot, and what it wrote so far."""

    popen: subprocess.Popen[bytes]
    out: Path
    err: Path

    @property
    def stdout(self) -> str:
        return self.out.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return self.err.read_text(errors="replace")

    def says(self, text: str, times: int = 1) -> None:
        """Wait until it has written this."""
        eventually(
            lambda: (self.stdout + self.stderr).count(text) >= times or self._ended_without(text),
            f"never said {text!r}: {self.stdout}{self.stderr}",
        )

    def ends(self) -> int:
        """Its exit code, as shells report it."""
        try:
            code = self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"does not end: {self.stdout}{self.stderr}")
        return 128 - code if code < 0 else code

    def kill(self, number: int = signal.SIGTERM) -> None:
        self.popen.send_signal(number)

    def _ended_without(self, text: str) -> bool:
        if self.popen.poll() is not None and text not in self.stdout + self.stderr:
            pytest.fail(f"ended with {self.popen.returncode} and never said {text!r}: {self.stdout}{self.stderr}")
        return False


@dataclass
class Run:
    """Starts mpiboot commands and ends what is left of them."""

    directory: Path
    processes: list[Process] = field(default_factory=list)

    def __call__(
        self,
        *argv: object,
        env: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        program: tuple[str, ...] = (sys.executable, "-m", "mpiboot"),
    ) -> Process:
        number = len(self.processes)
        out, err = self.directory / f"out.{number}", self.directory / f"err.{number}"
        environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TMPDIR": str(self.directory), **(env or {})}
        with out.open("wb") as stdout, err.open("wb") as stderr:
            command = [*prefix, *program, *map(str, argv)]
            streams = {"stdout": stdout, "stderr": stderr, "stdin": subprocess.DEVNULL}
            popen = subprocess.Popen(command, env=environ, start_new_session=True, **streams)  # type: ignore[call-overload]
        self.processes.append(Process(popen, out, err))
        return self.processes[-1]

    def end(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
        for process in self.processes:
            try:
                process.popen.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill(signal.SIGKILL)
