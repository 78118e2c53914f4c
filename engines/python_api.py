"""`mpiboot.run(...)`: run an MPI job from a script, a notebook or a test, by the command `mpiboot run`.

A process of its own does it: then a job runs from any thread, without changes to the signals and streams of the caller.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mpiboot.engines import request
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Word = str | os.PathLike[str]

LINES_IN_ERROR = 10


@dataclass(frozen=True)
class Result:
    """How a job ended. `stdout` is the launcher's; `stderr` has everything else, the workers' lines too."""

    job: str
    exit_code: int
    stdout: str
    stderr: str


class JobError(Exception):
    """A job failed, or could not begin. `result` has its exit code and output."""

    def __init__(self, result: Result) -> None:
        self.result = result
        lines = [line for line in result.stderr.splitlines() if line.strip()][-LINES_IN_ERROR:]
        super().__init__("\n  ".join([f"the job {result.job} ended with exit code {result.exit_code}", *lines]))


class JobTimeoutError(JobError):
    """The job took longer than `timeout` seconds, and was ended."""


def run(
    command: str | Sequence[Word] = (), image: str = "", *, n: int | None = None, workers: int = 1,
    slots: int | None = None, env: Mapping[str, str] | None = None, engine: str | None = None, name: str | None = None,
    manifest: Word | None = None, options: Sequence[str] = (), input: str | None = None,  # noqa: A002 (subprocess.run's)
    cwd: Word | None = None, timeout: float | None = None, check: bool = True, echo: bool = False,
) -> Result:  # fmt: skip
    """Run a program as `n` ranks on `workers` workers, or the job of a manifest, and return how it ended.

    `command` and `image` are those of `mpiboot run IMAGE -- COMMAND`; a text is split as a shell does. `options` are
    further words for `mpiboot run`, such as ("--retries", "2"). `input` goes to rank 0. With `check` a job that fails
    raises JobError. With `echo` its output is also printed as it comes. A job that takes longer than `timeout` seconds
    is ended, and JobTimeoutError raised. Ctrl-C ends the job.
    """
    words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
    if bool(words) == (manifest is not None):
        raise UserError("mpiboot.run needs a command, or manifest=FILE")
    if manifest is None:
        job = name or request.name_for(words)
        given = {"--processes": n, "--workers": workers, "--slots": slots}
        what = [f"{flag}={value}" for flag, value in given.items() if value is not None]
        what += [f"--env={key}={value}" for key, value in (env or {}).items()]
        program = [*([image] if image else []), "--", *words]
    else:
        job = request.from_file(str(Path(cwd or ".") / manifest), name).job.job.name
        what, program = [f"--file={os.fspath(manifest)}"], []
    where = [f"--engine={engine}"] if engine else []
    argv = [sys.executable, "-m", "mpiboot", "run", f"--name={job}", *where, *what, *options, *program]
    code, out, err, in_time = _follow(argv, input, cwd, timeout, echo=echo)
    result = Result(job, code, out, err)
    if not in_time:
        raise JobTimeoutError(result)
    if check and code != 0:
        raise JobError(result)
    return result


def _follow(
    argv: list[str], given: str | None, cwd: Word | None, timeout: float | None, *, echo: bool
) -> tuple[int, str, str, bool]:
    """Exit code, stdout, stderr, and whether the process ended in time."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL if given is None else pipe, stdout=pipe, stderr=pipe, cwd=cwd,
        process_group=0,  # Ctrl-C reaches this process; it sends one signal on, because a second one kills
    )  # fmt: skip
    kept: dict[str, list[str]] = {"out": [], "err": []}
    assert process.stdout
    assert process.stderr
    threads = [
        _thread(_copy, process.stdout, kept["out"], sys.stdout if echo else None),
        _thread(_copy, process.stderr, kept["err"], sys.stderr if echo else None),
    ]
    if given is not None:
        assert process.stdin
        _thread(_write, process.stdin, given)
    in_time = True
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        in_time = False
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
        for thread in threads:
            thread.join()
    return process.returncode, "".join(kept["out"]), "".join(kept["err"]), in_time


def _thread(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _copy(stream: IO[bytes], kept: list[str], shown: IO[str] | None) -> None:
    with stream:
        for line in stream:
            text = line.decode(errors="replace")
            kept.append(text)
            if shown:
                shown.write(text)
                shown.flush()


def _write(stream: IO[bytes], text: str) -> None:
    try:
        with stream:
            stream.write(text.encode())
    except BrokenPipeError:
        pass  # the job did not read all of it
