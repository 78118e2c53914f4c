"""The operator's side of the check-in service: tokens from Secrets, worker states from the caches, and its URLs."""

from __future__ import annotations

import base64
import os
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.roster import Pod, View
from mpiboot.job import names
from mpiboot.job.plan import keys
from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError
from mpiboot.kube.projections import meta

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.controller.cache import Cache
    from mpiboot.controller.observe import Observed
    from mpiboot.controller.settings import Settings
    from mpiboot.job.model import Job
    from mpiboot.kube.api import Api
    from mpiboot.kube.pod_projection import PodView
    from mpiboot.kube.projections import MpiJobView

# Any pod may send wrong tokens as fast as it can, and without a pause each one would be a request to the API server.
SECRET_HOLDS = 5.0  # seconds until a job's Secret is read again
NAMELESS = "its name is not in DNS yet"
NO_SECRET_HOLDS = 0.5  # ... until it is looked for again: its job's workers may report a moment after it is made


class ClusterAuthority:
    """Answers from the caches. A job's token comes from its Secret, which is read again after seconds."""

    def __init__(self, api: Api, mpi_jobs: Cache[MpiJobView], view: Callable[[str], View | None]) -> None:
        self._api = api
        self._mpi_jobs = mpi_jobs
        self._view = view
        self._answers: dict[str, tuple[float, str, Credentials | None]] = {}  # by job: when, for which uid, what

    async def credentials(self, job: str) -> Credentials | None:
        namespace, _, name = job.partition("/")
        found = self._mpi_jobs.of(job).get(name)
        if found is None:
            return None
        now = time.monotonic()
        for known, (at, _, _) in tuple(self._answers.items()):
            if now - at < SECRET_HOLDS:
                break
            del self._answers[known]
        if (answer := self._answers.get(job)) and answer[1] == found.meta.uid:
            at, _, credentials = answer
            if credentials or now - at < NO_SECRET_HOLDS:
                return credentials
        credentials = await self._ask(namespace, name, found.meta.uid)
        self._answers.pop(job, None)
        self._answers[job] = (now, found.meta.uid, credentials)
        return credentials

    async def _ask(self, namespace: str, name: str, uid: str) -> Credentials | None:
        """The credentials in a job's Secret."""
        try:
            secret = await self._api.get(kinds.SECRET, namespace, names.secret(name))
        except ApiError as error:
            if error.not_found:
                return None
            raise
        owner = meta(secret).owner
        token = base64.b64decode((secret.get("data") or {}).get(keys.TOKEN, ""))
        if not token or owner is None or owner.uid != uid:
            return None
        return Credentials(uid, token.decode())

    def view(self, job: str) -> View | None:
        return self._view(job)


def checkin_view(job: Job, seen: Observed, cluster_domain: str) -> View:
    """The workers as the cluster knows them, under the names of the hostfile."""
    pods = {
        pod.index: Pod("pending", pod.meta.uid, reason=NAMELESS) if pod.name in seen.unnamed else _pod(pod)
        for pod in seen.wanted_workers(job)
    }
    return View(names.worker_hosts(job, cluster_domain), pods)


def _pod(pod: PodView) -> Pod:
    if pod.ended:
        return Pod("failed", pod.meta.uid, reason=pod.why or pod.phase)
    if pod.started:
        return Pod("running", pod.meta.uid, pod.ip, pod.why)
    failed_before = pod.restarts > 0
    return Pod("failed" if failed_before else "pending", pod.meta.uid, pod.ip, pod.why)


def checkin_urls(settings: Settings, server: str, namespace: str) -> tuple[str, ...]:
    """The URLs under which pods reach this replica: its address first, which needs no DNS, then the lasting Service."""
    if not settings.checkin_port:
        return ()
    if settings.checkin_urls:
        return tuple(settings.checkin_urls.split())
    port = settings.checkin_port
    address = os.environ.get("POD_IP") or own_address(server)
    urls = [f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"] if address else []
    if settings.checkin_service:
        urls.append(f"http://{settings.checkin_service}.{namespace}.svc:{port}")
    return tuple(urls)


def own_address(server: str) -> str:
    """This machine's address towards the API server; empty if the API server runs on this machine."""
    parts = urlsplit(server)
    try:
        family, kind, _, _, to = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(to)  # a datagram socket sends nothing
            address = str(probe.getsockname()[0])
    except OSError:
        return ""
    return "" if address.startswith("127.") or address == "::1" else address
