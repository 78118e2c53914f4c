"""One replica of the operator: all of them watch and take check-ins; the one that leads also acts."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import uuid
from typing import TYPE_CHECKING, Any

from mpiboot.checkin.server import CheckinServer
from mpiboot.controller import kinds, place, preflight
from mpiboot.controller.cache import Cache
from mpiboot.controller.checkins import ClusterAuthority
from mpiboot.controller.events import Recorder
from mpiboot.controller.lease import Lease
from mpiboot.controller.metrics import Metrics
from mpiboot.controller.monitoring import Monitoring
from mpiboot.controller.observe import Caches
from mpiboot.controller.queue import Queue
from mpiboot.controller.reconcile import Reconciler
from mpiboot.controller.report import Reporter
from mpiboot.controller.view import config_map_view, mpi_job_view, service_view
from mpiboot.controller.view_job import job_view
from mpiboot.controller.view_pod import is_failed_launcher, pod_view
from mpiboot.job import labels
from mpiboot.job.settings import Settings as JobSettings
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mpiboot.checkin.picture import View
    from mpiboot.controller.api import Api
    from mpiboot.controller.settings import Settings

log = logging.getLogger(__name__)

LEASE = "mpiboot-operator"
OURS = f"{labels.OPERATOR_NAME}={labels.OPERATOR}"  # a cluster holds many pods: only those of MPI jobs are watched
LOST = 70  # exit code when another replica leads, or could


class Replica:
    """All parts and how they are connected. Its order in time is in `run`."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._metrics = Metrics()
        self._recorder = Recorder(api)
        self._queue = Queue(self._handle, settings.workers)
        self._caches = caches(api, settings.namespace, self._queue.add)
        self._peers = preflight.Peers(api, settings.peer_leases.split(), self._all_again)
        self._urls = place.checkin_urls(settings, api.connection.server, api.connection.namespace)
        self._reconciler = Reconciler(
            api,
            self._caches,
            Reporter(api, self._caches.mpi_jobs, self._recorder, self._metrics),
            JobSettings(
                settings.own_images,
                cluster_domain=settings.cluster_domain,
                checkin_urls=self._urls,
                delivery_image=settings.delivery_image,
                units_per_node=settings.gpus_per_node,
                mount_keys=settings.mount_keys,
            ),
            "ecdsa" if settings.key_type == "ecdsa" else "ed25519",
            self._show,
        )
        self._checkins = CheckinServer(ClusterAuthority(api, self._caches.mpi_jobs, self._reconciler.view))

    async def run(self) -> int:
        """The exit code, after SIGTERM or SIGINT, or at once when another replica may lead."""
        await preflight.check(self._api)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        monitoring = Monitoring(self._unready, self._text)
        if self._settings.monitoring_port:
            await monitoring.start(self._settings.listen, self._settings.monitoring_port)
        if self._settings.checkin_port:
            await self._checkins.start(self._settings.listen, self._settings.checkin_port)
            log.info("check-ins at %s", " ".join(self._urls) or "no address that pods could reach")
        try:
            async with asyncio.TaskGroup() as group:
                work = [group.create_task(each, name=name) for name, each in self._tasks().items()]
                await stop.wait()
                log.info("ending")
                for task in work:
                    task.cancel()
        finally:
            await monitoring.close()
            await self._checkins.close()
        return 0

    def _tasks(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            **{f"watch {name}": cache.run() for name, cache in vars(self._caches).items()},
            "events": self._recorder.run(),
            "peers": self._peers.run(),
            "queue": self._work(),
            "warm-up": warm_up(),
            "lease": self._lead(),
        }

    async def _work(self) -> None:
        """Nothing is decided before everything is known: a pod not seen yet would be created again, and jobs may be in
        another operator's hands.
        """
        for cache in vars(self._caches).values():
            await cache.synced.wait()
        await self._peers.known.wait()
        log.info("watching %s", self._settings.namespace or "all namespaces")
        await self._queue.run()

    async def _lead(self) -> None:
        if not self._settings.leader_election:
            self._start_leading()
            return
        identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        namespace = self._settings.lock_namespace or self._api.connection.namespace
        lease = Lease(self._api, namespace, LEASE, identity, self._settings.lease_seconds)
        await lease.acquire()
        self._start_leading()
        try:
            await lease.keep()
        except asyncio.CancelledError:
            self._metrics.leader = False
            await lease.release()
            raise
        # What is under way must not reach the API server any more: no tidying up.
        logging.shutdown()
        os._exit(LOST)

    def _start_leading(self) -> None:
        log.info("leading")
        self._metrics.leader = True
        self._all_again()

    def _all_again(self) -> None:
        for key in tuple(self._caches.mpi_jobs.keys()):
            self._queue.add(key)

    async def _handle(self, key: str) -> float | None:
        if self._metrics.leader and not self._peers.holder:
            with self._metrics.reconcile():
                return await self._reconciler.handle(key)
        self._show(key, self._reconciler.view(key))
        return None

    def _show(self, key: str, view: View | None) -> None:
        """Let the job's launcher know what the cluster knows."""
        if view is None:
            self._checkins.forget(key)
            self._queue.forget(key)
            self._caches.pods.forget(key)
        else:
            self._checkins.observe(key, view)

    def _unready(self) -> str:
        late = [cache.kind.plural for cache in vars(self._caches).values() if not cache.synced.is_set()]
        return f"not listed yet: {', '.join(late)}" if late else ""

    def _text(self) -> str:
        self._metrics.queued = len(self._queue)
        return self._metrics.text()


async def warm_up() -> None:
    """Load what makes keys: the first job shall not wait for it."""
    await asyncio.to_thread(generate)


def caches(api: Api, namespace: str, changed: Callable[[str], None]) -> Caches:
    return Caches(
        mpi_jobs=Cache(api, kinds.MPI_JOB, mpi_job_view, changed, namespace=namespace),
        jobs=Cache(api, kinds.JOB, job_view, changed, namespace=namespace, selector=OURS),
        # Kubernetes may delete the pod of a failed launcher before anybody asked why it failed.
        pods=Cache(api, kinds.POD, pod_view, changed, namespace=namespace, selector=OURS, keep=is_failed_launcher),
        services=Cache(api, kinds.SERVICE, service_view, changed, namespace=namespace, selector=OURS),
        config_maps=Cache(api, kinds.CONFIG_MAP, config_map_view, changed, namespace=namespace, selector=OURS),
    )
