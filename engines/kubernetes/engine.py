"""A job on a Kubernetes cluster. The operator there does the work of an engine; this one asks for it and follows it."""

from __future__ import annotations

import asyncio
import queue
import secrets
import signal
import threading
import time
from concurrent import futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.engines.engine import CancelledError
from mpiboot.engines.inbox import LAUNCHER, Ended, Failed, Interrupted
from mpiboot.engines.kubernetes.cluster import refusal
from mpiboot.engines.kubernetes.directory_sender import DirectorySender
from mpiboot.engines.kubernetes.launcher_output import LauncherOutput
from mpiboot.engines.kubernetes.launcher_streams import LauncherStreams
from mpiboot.engines.kubernetes.namespace_jobs import NoJobError
from mpiboot.engines.kubernetes.results_fetcher import ResultsFetcher
from mpiboot.engines.kubernetes.state_notes import StateNotes
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.kubernetes.cluster import Cluster
    from mpiboot.engines.kubernetes.directory import Listing
    from mpiboot.engines.kubernetes.namespace_jobs import JobId
    from mpiboot.engines.kubernetes.snapshot import Snapshot
    from mpiboot.engines.output import Output
    from mpiboot.engines.stdin import Stdin

LOOK_EVERY = 0.5  # seconds
LONGEST_PAUSE = 5.0  # seconds between two tries to reach a cluster that does not answer
ENDS_WITHIN = 30.0  # seconds more than its grace period that a launcher on a deleted job may take
DELETED_LATER = "mpiboot deletes the job when it answers; press Ctrl-C to leave the job there"
NO_MPIBOOT = 'exec: "mpiboot"'  # of a container runtime that does not find it
NO_DATA = 74  # the exit code if a program succeeds, and its results cannot be fetched
GRACE = 30.0  # seconds, Kubernetes' default


@dataclass(frozen=True)
class Caller:
    """What a job gets of its caller. `detach`: the run ends when the job has it, and leaves the job there.

    `needs_stdin`: there is input, so a cluster that does not take it is an error.
    """

    listing: Listing | None = None
    stdin: Stdin | None = None
    needs_stdin: bool = False
    fetch: tuple[str, ...] = ()  # patterns of files of the directory to bring back
    verbose: bool = False
    detach: bool = False


class KubernetesEngine:
    """One run of one job."""

    def __init__(self, cluster: Cluster, manifest: Mapping[str, Any], grace: float | None, inbox: Inbox[Event],
                 output: Output, caller: Caller | None = None) -> None:  # fmt: skip
        """`grace` is the launcher's grace period, None if the manifest leaves it to the cluster."""
        self._cluster, self._jobs = cluster, cluster.jobs
        self._manifest, self._inbox, self._output = manifest, inbox, output
        self._ends_within = ENDS_WITHIN + (GRACE if grace is None else grace)
        self._name = str(manifest["metadata"]["name"])
        self._run = secrets.token_hex(8)
        self._creating: futures.Future[JobId] | None = None
        self._following: futures.Future[int] | None = None
        self._job: JobId | None = None
        self._caller = caller = caller or Caller()
        shows = caller.listing is not None and not caller.detach
        streams = LauncherStreams(
            cluster.jobs, output, caller.stdin, needs_stdin=caller.needs_stdin, shows_output=shows
        )
        self._launchers = LauncherOutput(cluster.jobs, output, streams)
        self._sender = DirectorySender(cluster.jobs, caller.listing, streams, output) if caller.listing else None
        self._fetcher = None
        if caller.listing and caller.fetch:
            self._fetcher = ResultsFetcher(cluster.jobs, caller.listing, caller.fetch, output)
        self._detached = False
        self._cancelled = threading.Event()
        self._stopping = False  # the user has asked for the end
        self._gone = False  # the cluster has taken the deletion
        self._away = _Away(output)

    def start(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError
        self._creating = self._cluster.start(self._jobs.create(self._manifest, self._run))
        if self._cancelled.is_set():
            self._creating.cancel()
        try:
            self._job = self._creating.result()
        except futures.CancelledError:
            raise CancelledError from None
        except (ApiError, UnreachableError) as error:
            self._gone = _is_final(error) or (isinstance(error, UnreachableError) and not error.sent)
            raise refusal(error) from None
        except UserError:
            self._gone = True
            raise
        self._following = self._cluster.start(self._follow(self._job))
        self._following.add_done_callback(self._ended)

    def cancel(self) -> None:
        self._cancelled.set()
        if self._creating:
            self._creating.cancel()

    def restart(self, process: str) -> None:
        """Nothing: the cluster starts again what has ended."""

    def withdraw(self, worker: str) -> None:
        """Nothing: the operator replaces workers."""

    def scale(self, workers: int) -> None:
        """Nothing: `mpiboot scale` changes the MPIJob."""

    def signal(self, process: str, number: int) -> None:  # noqa: ARG002 (a deletion sends SIGTERM to all)
        """Delete the job: the cluster then sends SIGTERM to its processes, and SIGKILL after their grace period."""
        if self._job:
            self._stopping = self._launchers.deleting = True
            self._cluster.call(self._delete(self._job))

    def remove(self) -> None:
        """Delete the job. While the cluster does not answer this waits, until the user asks once more for the end."""
        try:
            if self._following:
                self._following.cancel()
            if self._detached and not self._stopping:
                return
            if not self._gone and (self._stopping or not self._deleted_before_a_signal()):
                where = self._jobs.namespace
                raise UserError(
                    f"the job {self._name} may be left in namespace {where}; delete it with: "
                    f"mpiboot delete {self._name} --engine kubernetes -n {where}"
                )
        finally:
            self._cluster.close()

    def _deleted_before_a_signal(self) -> bool:
        deleting = self._cluster.start(self._remove())
        while True:
            try:
                deleting.result(timeout=0.1)
            except TimeoutError:
                if self._is_interrupted():
                    return False
            else:
                return self._gone

    def _is_interrupted(self) -> bool:
        try:
            event = self._inbox.get_nowait()
        except queue.Empty:
            return False
        return isinstance(event, Interrupted) and event.signum != signal.SIGPIPE

    async def _remove(self) -> None:
        job = self._job
        while job is None:
            try:
                job = await self._jobs.of_run(self._name, self._run)
            except (ApiError, UnreachableError) as error:
                if _is_final(error):
                    self._output.say(str(refusal(error)))
                    return
                await self._away.wait(error, DELETED_LATER)
            else:
                if job is None:
                    self._gone = True
                    return
        await self._delete(job)

    def _ended(self, following: futures.Future[int]) -> None:
        if following.cancelled():
            return
        if (error := following.exception()) is None:
            self._inbox.put(Ended(LAUNCHER, following.result()))
        else:
            self._inbox.put(Failed(refusal(error) if isinstance(error, ApiError | UnreachableError) else error))

    async def _follow(self, job: JobId) -> int:
        """The exit code of the job, once it has ended. Only a first look that is refused is an error."""
        notes = StateNotes(self._jobs, self._output, verbose=self._caller.verbose)
        seen = False
        while True:
            try:
                look = await self._jobs.look(job, LAUNCHER)
            except NoJobError as error:
                return await self._deleted(error)
            except (ApiError, UnreachableError) as error:
                if not seen and _is_final(error):
                    raise
                if self._stopping:  # then the deletion waits, and says so
                    await asyncio.sleep(LOOK_EVERY)
                else:
                    await self._away.wait(error, "the job goes on")
                continue
            seen = True
            self._away.answered()
            if not self._stopping:
                await notes.update(job, look)
            if look.status.get("state") == "Invalid":
                return 2
            if self._attend(look):
                return 0
            if look.conditions.finished:
                self._explain(look)
                await self._launchers.end()
                return await self._with_results(look.exit_code())
            await asyncio.sleep(LOOK_EVERY if self._launchers.begun else LOOK_EVERY / 2)

    def _explain(self, look: Snapshot) -> None:
        """Say what a launcher's failure means that only the caller's wish explains."""
        failures = (str(look.status.get("reason") or ""), *(pod.why for pod in look.of(LAUNCHER)))
        if self._sender and any(NO_MPIBOOT in failure for failure in failures):
            without = "--no-workdir and a program that is in the image"
            self._output.say(
                f"the image has no mpiboot in it, so it cannot take the current directory: use {without}, "
                "or build it FROM one of ours"
            )

    def _attend(self, look: Snapshot) -> bool:
        """Give launchers that have started since what they need. Returns whether the run leaves the job now."""
        if self._sender:
            self._sender.update(look)
        if self._fetcher:
            self._fetcher.update(look)
        if not self._caller.detach:
            self._launchers.update(look)
        elif not self._sender or self._sender.sent:
            self._detached = True
            self._output.feed(LAUNCHER, "out", f"{self._name}\n".encode())
            here = f"{self._name} --engine kubernetes -n {self._jobs.namespace}"
            self._output.note(f"the job goes on: mpiboot logs -f {here}; mpiboot delete {here}")
        return self._detached

    async def _with_results(self, code: int) -> int:
        """The job's exit code, when its results are here; another one than 0 if they are not."""
        if self._fetcher:
            try:
                await self._fetcher.end()
            except UserError as error:
                self._output.say(str(error))
                return code or NO_DATA
        return code

    async def _deleted(self, error: NoJobError) -> int:
        """The exit code of a job that is no more; its launcher may still be at its end."""
        if not self._stopping:
            self._output.say(f"{error}: it was deleted while it ran")
        self._launchers.deleting = True
        try:
            async with asyncio.timeout(self._ends_within):
                await self._launchers.end()
        except TimeoutError:
            self._output.say("the launcher has not ended yet; the cluster ends it")
        return 128 + signal.SIGTERM

    async def _delete(self, job: JobId) -> None:
        """Delete the job, however long the cluster does not answer; say so if it refuses."""
        while not self._gone:
            try:
                await self._jobs.delete(job)
            except (ApiError, UnreachableError) as error:
                if _is_final(error):
                    self._output.say(str(refusal(error)))
                    return
                await self._away.wait(error, DELETED_LATER)
            else:
                self._gone = True
        self._away.answered()


class _Away:
    """Whether the cluster answers, and what the user reads about that."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._since: float | None = None
        self._pause = LOOK_EVERY

    async def wait(self, error: ApiError | UnreachableError, meanwhile: str) -> None:
        """Pause before the next try."""
        if self._since is None:
            self._since, self._pause = time.monotonic(), LOOK_EVERY
            self._output.say(f"{refusal(error)}; {meanwhile}")
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def answered(self) -> None:
        if self._since is not None:
            self._output.say(f"the cluster answers again after {time.monotonic() - self._since:.0f} s")
            self._since = None


def _is_final(error: ApiError | UnreachableError) -> bool:
    """Whether the cluster did answer, and would answer the same again."""
    return isinstance(error, ApiError) and not error.passing
