"""The connection to a launcher while it runs: our stdin for it, and its output as it comes.

A log has whole lines only, and both streams in one. So the output of a launcher that waits for our directory comes over
an attached connection: nothing of its program is printed before we are there.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.kubernetes.shown_lines import ShownLines
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.channels import STDOUT

if TYPE_CHECKING:
    from mpiboot.engines.kubernetes.namespace_jobs import NamespaceJobs
    from mpiboot.engines.output import Output
    from mpiboot.engines.stdin import Stdin
    from mpiboot.kube.channels import Channels

PING_EVERY = 20.0  # seconds: what stands between us and the cluster may cut connections that are silent
NO_RIGHT = 403
# The last two: this run is over.
BROKEN = (UnreachableError, RuntimeError, CancelledError)


class LauncherStreams:
    """One connection to each launcher's container. Only the first one has our stdin."""

    def __init__(
        self, jobs: NamespaceJobs, output: Output, stdin: Stdin | None, *, needs_stdin: bool, shows_output: bool
    ) -> None:
        """`needs_stdin`: a cluster that does not take it is an error."""
        self._needs_stdin = needs_stdin
        self._jobs, self._output, self._stdin = jobs, output, stdin
        self._open_stdin = stdin is not None  # launchers wait for the end of theirs
        self.shows_output = shows_output
        self._attached: dict[str, asyncio.Event] = {}

    @property
    def wanted(self) -> bool:
        return self.shows_output or self._open_stdin

    async def attached(self, pod: str) -> None:
        """Return when the connection stands, or when there will be none."""
        if self.wanted:
            await self._attached.setdefault(pod, asyncio.Event()).wait()

    def give_up(self, pod: str) -> None:
        """There will be no connection."""
        self._attached.setdefault(pod, asyncio.Event()).set()

    async def follow(self, pod: str, container: str) -> tuple[ShownLines, bool]:
        """Pass both directions on until the container ends. Returns what was shown, and whether that was all."""
        event = self._attached.setdefault(pod, asyncio.Event())
        shown = ShownLines()
        try:
            channels = await self._open(pod, container)
        finally:
            event.set()
        if channels is None:
            return shown, False
        async with channels:
            pinging = asyncio.create_task(_ping(channels))
            given = _Sink(channels, asyncio.get_running_loop())
            if self._stdin:
                self._stdin.copy_to(given)  # only the first launcher gets more than the end of it
            try:
                async for stream, data in channels.output():
                    # The reader of our output may be slow, and other requests need this thread.
                    await asyncio.to_thread(self._output.feed, LAUNCHER, "out" if stream == STDOUT else "err", data)
                    shown.add(stream, data)
            except UnreachableError:
                pass  # the log goes on from here
            finally:
                pinging.cancel()
        whole = channels.exit_code is not None
        if self._stdin and not whole and not given.ended:
            raise UserError(
                f"the connection to {pod} broke while it got its input, after {given.bytes} bytes; the program may "
                "have got a part of it only, so the job is ended; put large input into a file of the working directory"
            )
        return shown, whole

    async def _open(self, pod: str, container: str) -> Channels | None:
        """The connection; None if the container cannot be attached to, because it has ended or the cluster is away."""
        try:
            return await self._jobs.attach(pod, container, stdin=self._open_stdin, output=self.shows_output)
        except ApiError as error:
            if error.status == NO_RIGHT:
                right = f"you need the right to create pods/attach in namespace {self._jobs.namespace}"
                if self._needs_stdin:
                    raise UserError(f"the cluster does not let you send input: {right}; or use < /dev/null") from None
                self._output.note(f"warning: the program gets no input, and its output comes by lines: {right}")
        except UnreachableError:
            pass
        return None


async def _ping(channels: Channels) -> None:
    with suppress(UnreachableError):
        while True:
            await asyncio.sleep(PING_EVERY)
            await channels.ping()


class _Sink:
    """The launcher's stdin, for the thread that reads ours."""

    def __init__(self, channels: Channels, loop: asyncio.AbstractEventLoop) -> None:
        self._channels, self._loop = channels, loop
        self.ended = False  # it has got all of the input
        self.bytes = 0
        self._broken = False

    def write(self, data: bytes) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._channels.send(data), self._loop).result()
        except BROKEN as error:
            self._broken = True
            raise OSError(str(error)) from error
        self.bytes += len(data)

    def close(self) -> None:
        self.ended = not self._broken
        with suppress(*BROKEN):
            asyncio.run_coroutine_threadsafe(self._channels.end_stdin(), self._loop).result()
