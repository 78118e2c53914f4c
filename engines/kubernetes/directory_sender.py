"""Sends the caller's directory to each launcher that starts: to the first, and to those that replace it."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.kubernetes import directory
from mpiboot.engines.kubernetes.namespace_jobs import main_container
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.channels import STDERR

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.engines.kubernetes.directory import Listing
    from mpiboot.engines.kubernetes.launcher_streams import LauncherStreams
    from mpiboot.engines.kubernetes.namespace_jobs import NamespaceJobs
    from mpiboot.engines.kubernetes.snapshot import Snapshot
    from mpiboot.engines.output import Output
    from mpiboot.kube.api import Object
    from mpiboot.kube.channels import Channels

PROGRESS_EVERY = 2.0  # seconds
PAUSE = 1.0  # before it is sent again
CHUNK = 2**17
NO_RIGHT = 403
COMMAND = ("mpiboot", "workdir", "store")


class _StoppedError(Exception):
    """The other side takes no more."""


class DirectorySender:
    """One directory, and the launchers that have it."""

    def __init__(self, jobs: NamespaceJobs, listing: Listing, streams: LauncherStreams, output: Output) -> None:
        """A launcher gets the directory when `streams` are attached: its program starts then, and prints."""
        self._jobs, self._listing, self._streams, self._output = jobs, listing, streams, output
        self._sending: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._told = 0.0
        self.sent = False  # a launcher has all of it

    def update(self, seen: Snapshot) -> None:
        """Begin to send to a launcher that has started since. Raises UserError if one did not take the directory."""
        for pod in seen.of(LAUNCHER):
            key = (pod.name, pod.began)
            if pod.started and not pod.ended and key not in self._sending:
                sending = self._send(seen.job, pod.name, first=not self._sending)
                self._sending[key] = asyncio.create_task(sending, name=f"directory for {pod.name}")
        for task in self._sending.values():
            if task.done():
                task.result()

    async def _send(self, job: Object, pod: str, *, first: bool) -> None:
        await self._streams.attached(pod)
        began = time.monotonic()
        if first and (left_out := self._listing.left_out):
            more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
            self._output.note(f"warning: not sent: {', '.join(left_out[:3])}{more}")
        while found := await self._running(pod):
            try:
                async with await self._jobs.execute(pod, main_container(job, found), COMMAND) as channels:
                    await self._stream(channels)
            except (ApiError, UnreachableError) as error:
                if isinstance(error, ApiError) and error.status == NO_RIGHT:
                    raise UserError(
                        f"the cluster does not let you send the working directory: you need the right to create "
                        f"pods/exec in namespace {self._jobs.namespace} ({error}); or use --no-workdir"
                    ) from None
                await asyncio.sleep(PAUSE)
                if await self._running(pod):
                    self._output.note(f"the working directory did not arrive ({error}); mpiboot sends it again")
                continue
            self.sent = True
            if (seconds := time.monotonic() - began) > PROGRESS_EVERY:
                self._output.note(f"sent the working directory ({_size(self._listing.size)}) in {seconds:.1f} s")
            return

    async def _running(self, pod: str) -> Object | None:
        """The pod, if it has not ended. Waits for a cluster that does not answer."""
        while True:
            try:
                found = await self._jobs.pod(pod)
            except ApiError as error:
                if not error.passing:
                    return None
            except UnreachableError:
                pass
            else:
                return found if (found.get("status") or {}).get("phase") == "Running" else None
            await asyncio.sleep(PAUSE)

    async def _stream(self, channels: Channels) -> None:
        """Send the archive, and wait until the other side has it."""
        answer = asyncio.create_task(_answer(channels))
        loop, waiting = asyncio.get_running_loop(), bytearray()

        def flush() -> None:
            asyncio.run_coroutine_threadsafe(channels.send(bytes(waiting)), loop).result()
            waiting.clear()

        def sink(data: bytes) -> None:
            if answer.done():
                raise _StoppedError
            waiting.extend(data)
            if len(waiting) >= CHUNK:
                flush()

        def work() -> None:
            directory.write(self._listing, sink, self._progress)
            flush()

        try:
            with suppress(_StoppedError):
                await _in_thread(work)
            text = await answer
        except UnreachableError:
            # The other side may have ended with a reason.
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE):
                    text = await answer
            if channels.exit_code is None:
                raise
        finally:
            answer.cancel()
        if channels.exit_code is None:
            raise UnreachableError(channels.error or "the connection broke")
        if channels.exit_code:
            raise UserError(f"the launcher cannot take the working directory: {text or channels.exit_code}")

    def _progress(self, done: int) -> None:
        now = time.monotonic()
        if not self._told:
            self._told = now
        elif now - self._told > PROGRESS_EVERY:
            self._told = now
            self._output.note(f"sending the working directory: {_size(done)} of {_size(self._listing.size)}")


async def _answer(channels: Channels) -> str:
    """What the other side wrote to stderr until its end."""
    text = b""
    async for channel, data in channels.output():
        if channel == STDERR:
            text += data
    return text.decode(errors="replace").strip()


async def _in_thread(work: Callable[[], None]) -> None:
    """Do it in a thread that does not outlive this process, as one of `asyncio.to_thread` does."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 (the caller must learn of every error)
            error = raised
        with suppress(RuntimeError):  # the loop is closed: this run is over
            loop.call_soon_threadsafe(finish, error)

    threading.Thread(target=run, name="directory", daemon=True).start()
    await done


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
