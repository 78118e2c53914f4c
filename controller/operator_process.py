"""One replica of the operator. Every replica watches and takes check-ins; only the leader changes objects."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import uuid
from typing import TYPE_CHECKING, Any, TypeVar

from mpiboot.checkin.server import CheckinServer
from mpiboot.controller import preflight
from mpiboot.controller.cache import Cache
from mpiboot.controller.cache import View as ObjectView
from mpiboot.controller.checkins import ClusterAuthority, checkin_urls
from mpiboot.controller.events import Recorder, subject
from mpiboot.controller.lease import Lease
from mpiboot.controller.metrics import Metrics, Monitoring
from mpiboot.controller.observe import Caches
from mpiboot.controller.reconcile import Reconciler
from mpiboot.controller.report import Reporter
from mpiboot.controller.state_word import truncated
from mpiboot.controller.status import Event
from mpiboot.controller.work_queue import Queue
from mpiboot.job import gang, names
from mpiboot.kube import kinds
from mpiboot.kube.job_projection import job_view
from mpiboot.kube.pod_projection import is_failed_launcher, pod_view
from mpiboot.kube.projections import config_map_view, mpi_job_view, pod_group_view, service_view
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mpiboot.checkin.messages import Attempt
    from mpiboot.checkin.roster import View
    from mpiboot.controller.settings import Settings
    from mpiboot.job.gang import Scheduler
    from mpiboot.kube.api import Api, Object
    from mpiboot.kube.kinds import Kind

V = TypeVar("V", bound=ObjectView)

log = logging.getLogger(__name__)

LEASE = "mpiboot-operator"
OURS = f"{names.OPERATOR_LABEL}={names.OPERATOR}"  # a cluster has many other pods: these are not watched


class Replica:
    """All parts of the operator and their connections. `run` shows the order in time."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        namespace = settings.lock_namespace or api.connection.namespace
        # Hundreds of requests may wait for a slot. The lease is lost if its renewal waits behind them.
        self._lease = Lease(api.apart(), namespace, LEASE, identity, settings.lease_seconds)
        self._metrics = Metrics()
        self._recorder = Recorder(api)
        self._queue = Queue(self._handle, settings.workers)
        self._scheduler = gang.scheduler(settings.gang_scheduling)
        self._caches = caches(api, settings.namespace, self._queue.add, self._unreadable, self._scheduler)
        self._peers = preflight.Peers(api, settings.peer_leases.split(), self._all_again)
        self._urls = checkin_urls(settings, api.connection.server, api.connection.namespace)
        # What changes objects stops with the lease, whatever the rest of this process does at that moment.
        acting = api.fenced(self._lease.left) if settings.leader_election else api
        self._reconciler = Reconciler(
            acting,
            self._caches,
            Reporter(acting, self._caches.mpi_jobs, self._recorder, self._metrics),
            settings.for_jobs(self._urls),
            "ecdsa" if settings.key_type == "ecdsa" else "ed25519",
            self._show,
        )
        self._checkins = CheckinServer(
            ClusterAuthority(api, self._caches.mpi_jobs, self._reconciler.view), attempted=self._attempted
        )

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT; the exit code."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        monitoring = Monitoring(self._unready, self._text)
        if self._settings.monitoring_port:
            await monitoring.start(self._settings.listen, self._settings.monitoring_port)
        if self._settings.checkin_port:
            await self._checkins.start(self._settings.listen, self._settings.checkin_port)
            log.info("check-in service at %s", " ".join(self._urls) or "no address that pods can reach")
        serving, stopped = asyncio.create_task(self.serve()), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                log.info("stopping")
                serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
        finally:
            stopped.cancel()
            await monitoring.close()
            await self._checkins.close()
        return 0

    async def serve(self) -> None:
        """Watch and work until cancelled. While the API server is away, wait for it."""
        outage = self._api.outage
        outage.listen(self._queue.wake)
        probe = asyncio.create_task(outage.run(self._api.ready), name="probe")
        try:
            await preflight.check(self._api, self._scheduler)
            async with asyncio.TaskGroup() as group:
                for name, each in self._tasks().items():
                    group.create_task(each, name=name)
        finally:
            probe.cancel()

    def _tasks(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            **{f"watch {name}": cache.run() for name, cache in self._caches.all().items()},
            "events": self._recorder.run(),
            "peers": self._peers.run(),
            "queue": self._work(),
            "warm-up": warm_up(),
            "lease": self._lead(),
        }

    async def _work(self) -> None:
        """Reconcile jobs once all lists are read. Before, the operator would create a pod again that it does not know,
        or work on jobs that another operator runs.
        """
        for cache in self._caches.all().values():
            await cache.synced.wait()
        await self._peers.known.wait()
        log.info("watching %s", self._settings.namespace or "all namespaces")
        await self._queue.run()

    async def _lead(self) -> None:
        if not self._settings.leader_election:
            self._start_leading()
            return
        while True:
            await self._lease.acquire()
            self._start_leading()
            try:
                await self._lease.keep()
            except asyncio.CancelledError:
                self._metrics.leader = False
                await self._lease.release()
                raise
            # Caches and check-in go on, and this replica may lead again.
            self._metrics.leader = False

    def _start_leading(self) -> None:
        log.info("leading")
        self._metrics.leader = True
        self._all_again()
        for cache in self._caches.all().values():
            for found, error in cache.skipped():
                self._report_unreadable(cache.kind, found, error)

    def _all_again(self) -> None:
        for key in tuple(self._caches.mpi_jobs.keys()):
            self._queue.add(key)

    def _unreadable(self, kind: Kind, found: Object, error: Exception) -> None:
        """Count an object that cannot be read, and send an event about it."""
        self._metrics.unreadable[kind.name] += 1
        log.debug("%s cannot be read", kind.name, exc_info=error)
        if self._metrics.leader:
            self._report_unreadable(kind, found, error)

    def _report_unreadable(self, kind: Kind, found: Object, error: Exception) -> None:
        text = truncated(f"the operator cannot read this {kind.name} and ignores it: {type(error).__name__}: {error}")
        self._recorder.send_about(subject(kind, found), Event("Warning", "ObjectUnreadable", text))

    async def _handle(self, key: str) -> float | None:
        if self._metrics.leader and not self._peers.holder:
            with self._metrics.reconcile():
                again = await self._reconciler.handle(key)
        else:
            self._show(key, self._reconciler.view(key))
            again = None
        if not self._caches.mpi_jobs.of(key):
            self._queue.forget(key)
        return again

    def _show(self, key: str, view: View | None) -> None:
        """Pass the state of a job's workers to its launcher. Without a view, drop what is kept for the job."""
        if view is None:
            self._checkins.forget(key)
            self._caches.pods.forget(key)
            self._caches.jobs.forget(key)
        else:
            self._checkins.observe(key, view)

    def _attempted(self, key: str, attempt: Attempt) -> None:
        """Note an attempt of a launcher that failed. Only the leader does: only it writes the job's status."""
        if self._metrics.leader and self._reconciler.attempted(key, attempt):
            self._queue.add(key)

    def _unready(self) -> str:
        late = [cache.kind.plural for cache in self._caches.all().values() if not cache.synced.is_set()]
        return f"not listed yet: {', '.join(late)}" if late else ""

    def _text(self) -> str:
        self._metrics.queued = len(self._queue)
        return self._metrics.text()


async def warm_up() -> None:
    """Load the library that makes keys: the first job must not wait for it."""
    await asyncio.to_thread(generate)


def caches(
    api: Api,
    namespace: str,
    changed: Callable[[str], None],
    unreadable: Callable[[Kind, Object, Exception], None] = lambda *_: None,
    scheduler: Scheduler | None = None,
) -> Caches:
    def ours(
        kind: Kind, project: Callable[[Object], V | None], keep: Callable[[V, bool], bool] = lambda *_: False
    ) -> Cache[V]:
        return Cache(api, kind, project, changed, namespace=namespace, selector=OURS, keep=keep, unreadable=unreadable)

    return Caches(
        mpi_jobs=Cache(api, kinds.MPI_JOB, mpi_job_view, changed, namespace=namespace, unreadable=unreadable),
        # A Job that a user deletes may hold an outcome that is not in the status yet.
        jobs=ours(kinds.JOB, job_view, lambda _, last_state_known: last_state_known),
        # Kubernetes may delete the pod of a failed launcher before the operator has read why it failed.
        pods=ours(kinds.POD, pod_view, lambda pod, _: is_failed_launcher(pod)),
        services=ours(kinds.SERVICE, service_view),
        config_maps=ours(kinds.CONFIG_MAP, config_map_view),
        pod_groups=ours(kinds.POD_GROUPS[scheduler.api_version], pod_group_view) if scheduler else None,
    )
