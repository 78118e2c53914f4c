"""What the launchers of a job on a cluster print, passed on until each has ended, also over broken connections."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.kubernetes.log_position import LogPosition
from mpiboot.engines.kubernetes.namespace_jobs import main_container
from mpiboot.kube.api_error import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.engines.kubernetes.launcher_streams import LauncherStreams
    from mpiboot.engines.kubernetes.namespace_jobs import NamespaceJobs
    from mpiboot.engines.kubernetes.shown_lines import LogFilter
    from mpiboot.engines.kubernetes.snapshot import Snapshot
    from mpiboot.engines.output import Output
    from mpiboot.kube.api import Object
    from mpiboot.kube.pod_projection import PodView

FIRST_PAUSE = 0.2  # seconds between two connections for one log; doubles up to LONGEST_PAUSE
LONGEST_PAUSE = 5.0
GIVES_UP_AFTER = 30.0  # seconds in which the log of a container that has ended cannot be read
REFUSED = frozenset({401, 403})


class LauncherOutput:
    """Reads the log of each launcher once. A cluster keeps stdout and stderr of a container as one stream."""

    def __init__(self, jobs: NamespaceJobs, output: Output, streams: LauncherStreams | None = None) -> None:
        self._jobs, self._output, self._streams = jobs, output, streams
        self._readers: dict[str, asyncio.Task[None]] = {}
        self.deleting = False  # the job is being deleted: that its pods go is no news

    def update(self, seen: Snapshot, *, follow: bool = True) -> None:
        """Begin to read the launchers that have started since. Raises UserError if one did not get its input."""
        for pod in self.pods(seen):
            if pod.phase not in {"Pending", "Unknown"} and pod.name not in self._readers:
                reading = self._read(seen.job, pod.name, follow=follow)
                self._readers[pod.name] = asyncio.create_task(reading, name=f"log of {pod.name}")
        for task in self._readers.values():
            if task.done():
                task.result()

    def pods(self, seen: Snapshot) -> Iterable[PodView]:
        """Those whose logs are read."""
        return seen.of(LAUNCHER)

    @property
    def begun(self) -> bool:
        """Whether any launcher has started."""
        return bool(self._readers)

    async def end(self) -> None:
        """Return when everything is passed on."""
        await asyncio.gather(*self._readers.values())
        self._output.finish(LAUNCHER)

    async def _read(self, job: Object, pod: str, *, follow: bool) -> None:
        if not (self._streams and self._streams.wanted):
            await self._read_log(job, pod, None, follow=follow)
            return
        try:
            found = await self._jobs.pod(pod)
        except (ApiError, UnreachableError):  # the log's reader tries again, or says that the pod is gone
            self._streams.give_up(pod)
            await self._read_log(job, pod, None, follow=follow)
            return
        streams = self._streams.follow(pod, main_container(job, found))
        if not self._streams.shows_output:
            await asyncio.gather(streams, self._read_log(job, pod, None, follow=follow))
            return
        shown, whole = await streams
        if not whole or found["spec"].get("restartPolicy") != "Never":
            await self._read_log(job, pod, shown.rest(), follow=follow)

    async def _read_log(self, job: Object, pod: str, new: LogFilter | None, *, follow: bool) -> None:
        """Read the log; with `new` only what that lets through."""
        position = LogPosition()
        pause, failing_since, said = FIRST_PAUSE, 0.0, False
        ended = False
        while True:
            came = False
            try:
                found = await self._jobs.pod(pod)
                ended = _has_ended(found, main_container(job, found))
                log = self._jobs.log(
                    pod, main_container(job, found), follow=follow and not ended, since=position.since
                )  # fmt: skip
                async for chunk in log:
                    came, failing_since = True, 0.0
                    # The reader of our output may be slow, and other requests need this thread.
                    data = position.take(chunk)
                    await asyncio.to_thread(self._output.feed, LAUNCHER, "out", new.take(data) if new else data)
                if ended or not follow:
                    if new:
                        self._output.feed(LAUNCHER, "out", new.end())
                    return
            except (ApiError, UnreachableError) as error:
                if isinstance(error, ApiError) and error.not_found:
                    if not ended and not self.deleting:
                        self._output.say(f"no more output of {pod}: the pod was deleted")
                    return
                if not follow or (isinstance(error, ApiError) and error.status in REFUSED):
                    self._output.say(f"no output of {pod}: {error}")
                    return
                failing_since = failing_since or time.monotonic()
                if ended and time.monotonic() - failing_since > GIVES_UP_AFTER:
                    self._output.say(f"the rest of the output of {pod} cannot be read: {error}")
                    return
                # The first failure only tells that the connection broke.
                if pause > FIRST_PAUSE and not said:
                    said = True
                    self._output.say(f"no output of {pod} for now: {error}; mpiboot tries again")
            position.reconnect()
            pause = FIRST_PAUSE if came else min(pause * 2, LONGEST_PAUSE)
            said = said and not came
            await asyncio.sleep(pause)


class WorkerOutput(LauncherOutput):
    """The same of one worker, whose output is then all that is shown."""

    def __init__(self, jobs: NamespaceJobs, output: Output, index: int) -> None:
        super().__init__(jobs, output)
        self._index = index

    def pods(self, seen: Snapshot) -> Iterable[PodView]:
        return [pod for pod in seen.of("worker") if pod.index == self._index]


def _has_ended(pod: Object, container: str) -> bool:
    """Whether the container has ended for good: its log is complete."""
    status = pod.get("status") or {}
    if status.get("phase") in {"Succeeded", "Failed"}:
        return True
    never = (pod.get("spec") or {}).get("restartPolicy") == "Never"
    states = (each.get("state") or {} for each in status.get("containerStatuses") or () if each["name"] == container)
    return never and any("terminated" in state for state in states)
