"""One guarded process of a job: its output goes to the terminal, its end into the inbox."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import IO, TYPE_CHECKING

from mpiboot.engines.inbox import Ended
from mpiboot.engines.local import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.local.layout import Program
    from mpiboot.engines.output import Output, Stream
    from mpiboot.engines.stdin import Stdin

GUARD = "mpiboot.engines.local.guard"
CHUNK = 65536


class _PipeSink:
    """A pipe to the program's stdin."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._pipe.write(left) :]

    def close(self) -> None:
        self._pipe.close()


class GuardedProcess:
    """Runs until the program ends, or until `lifeline`, the reading end of a pipe, is closed at its other end."""

    def __init__(
        self, program: Program, env: Mapping[str, str], cwd: str, lifeline: int, scratch: str,
        output: Output, inbox: Inbox[Event], stdin: Stdin | None = None,
    ) -> None:  # fmt: skip
        host = [program.host] if program.host else []
        self.name = program.name
        self._output, self._inbox = output, inbox
        self._process = subprocess.Popen(
            [*tools.again(), GUARD, str(lifeline), scratch, *host, "--", *program.argv],
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline,),
            start_new_session=True,  # Ctrl-C in the terminal is for this process alone
        )
        if stdin:
            assert self._process.stdin
            stdin.copy_to(_PipeSink(self._process.stdin))
        assert self._process.stdout
        assert self._process.stderr
        self._readers = [self._read(self._process.stdout, "out"), self._read(self._process.stderr, "err")]
        self._waiter = threading.Thread(target=self._wait, name=f"end of {self.name}", daemon=True)
        self._waiter.start()

    def signal(self, signum: int) -> None:
        self._process.send_signal(signum)

    def gone_within(self, seconds: float) -> bool:
        """Whether it has ended, waiting so long at most."""
        self._waiter.join(seconds)
        return not self._waiter.is_alive()

    def _read(self, pipe: IO[bytes], stream: Stream) -> threading.Thread:
        def pass_on() -> None:
            with pipe:
                while chunk := os.read(pipe.fileno(), CHUNK):
                    self._output.feed(self.name, stream, chunk)

        thread = threading.Thread(target=pass_on, name=f"output of {self.name}", daemon=True)
        thread.start()
        return thread

    def _wait(self) -> None:
        code = self._process.wait()
        for reader in self._readers:
            reader.join(2.0)  # a guard that was killed leaves a program that may hold the pipe open
        self._output.finish(self.name)
        self._inbox.put(Ended(self.name, 128 - code if code < 0 else code))
