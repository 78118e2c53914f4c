"""What the check-in server is told: who may speak for a job, and what the cluster knows of its workers."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.picture import Pod, View
from mpiboot.controller import kinds
from mpiboot.controller.api_error import ApiError
from mpiboot.controller.view import meta
from mpiboot.job import keys, names

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.controller.api import Api
    from mpiboot.controller.cache import Cache
    from mpiboot.controller.observe import Observed
    from mpiboot.controller.view import MpiJobView
    from mpiboot.controller.view_pod import PodView
    from mpiboot.job.model import Job

log = logging.getLogger(__name__)


class ClusterAuthority:
    """Answers from the caches; a job's token comes from its Secret, of which nothing is kept here."""

    def __init__(self, api: Api, mpi_jobs: Cache[MpiJobView], view: Callable[[str], View | None]) -> None:
        self._api = api
        self._mpi_jobs = mpi_jobs
        self._view = view

    async def credentials(self, job: str) -> Credentials | None:
        namespace, _, name = job.partition("/")
        found = self._mpi_jobs.of(job).get(name)
        if found is None:
            return None
        try:
            secret = await self._api.get(kinds.SECRET, namespace, names.secret(name))
        except ApiError as error:
            if error.not_found:
                return None
            raise
        owner = meta(secret).owner
        token = base64.b64decode((secret.get("data") or {}).get(keys.TOKEN, ""))
        if not token or owner is None or owner.uid != found.meta.uid:
            return None
        return Credentials(found.meta.uid, token.decode())

    def view(self, job: str) -> View | None:
        return self._view(job)


def picture(job: Job, seen: Observed, cluster_domain: str) -> View:
    """The workers as the cluster knows them, under the names of the hostfile."""
    pods = {pod.index: _pod(pod) for pod in seen.wanted_workers(job)}
    return View(names.worker_hosts(job, cluster_domain), pods)


def _pod(pod: PodView) -> Pod:
    if pod.ended:
        return Pod("failed", pod.meta.uid, reason=pod.why or pod.phase)
    if pod.started:
        return Pod("running", pod.meta.uid, pod.ip, pod.why)
    failed_before = pod.restarts > 0
    return Pod("failed" if failed_before else "pending", pod.meta.uid, pod.ip, pod.why)

