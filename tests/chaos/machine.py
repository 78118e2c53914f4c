"""What a cluster does around the operator, played on a real API server: kubelets, the Job controller, the garbage
collector. Each step looks at everything and does what is due, as those do.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError

if TYPE_CHECKING:
    from mpiboot.kube.api import Api
    from mpiboot.kube.kinds import Kind

Object = dict[str, Any]
OWNED = (kinds.POD, kinds.JOB, kinds.SERVICE, kinds.CONFIG_MAP, kinds.SECRET)
STEP = 0.05  # seconds


class Machine:
    """Everything but the operator, in one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self.outcomes: dict[str, str] = {}  # of launchers, by job: Complete or Failed; without one a launcher runs on
        self._named: set[str] = set()  # uids of pods that have a name in DNS

    async def run(self) -> None:
        while True:
            await self.step()
            await asyncio.sleep(STEP)

    async def step(self) -> None:
        """Do what is due now. An object that the operator changes at the same time is looked at again."""
        pods, jobs = await self.all(kinds.POD), await self.all(kinds.JOB)
        for pod in pods:
            with contextlib.suppress(ApiError):
                await self._kubelet(pod, pods)
        for job in jobs:
            with contextlib.suppress(ApiError):
                await self._job_controller(job, [pod for pod in pods if owner(pod) == job["metadata"]["uid"]])
        await self._garbage_collector()

    async def all(self, kind: Kind) -> list[Object]:
        found: list[Object] = []
        async for items, _ in self.api.pages(kind, self.namespace):
            found += items
        return found

    async def _status(self, kind: Kind, found: Object, status: Object) -> None:
        body = {"status": status}
        await self.api.patch(kind, self.namespace, found["metadata"]["name"], body, subresource="status")

    async def _kubelet(self, pod: Object, pods: list[Object]) -> None:
        meta, spec, phase = pod["metadata"], pod["spec"], pod.get("status", {}).get("phase")
        if "deletionTimestamp" in meta or spec.get("schedulingGates") or owner(pod) in {"", STRANGER}:
            return
        if phase == "Pending":
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            state = {"running": {"startedAt": now}}
            container = {"name": spec["containers"][0]["name"], "image": "x", "imageID": "x", "ready": True,
                         "started": True, "restartCount": 0, "state": state}  # fmt: skip
            status = {"phase": "Running", "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}],
                      "conditions": [{"type": "Ready", "status": "True"}],
                      "containerStatuses": [container]}  # fmt: skip
            await self._status(kinds.POD, pod, status)
        elif is_launcher(pod) and phase == "Running":
            # Its program ends as planned, once it has all workers.
            job = meta["labels"]["training.kubeflow.org/job-name"]
            ours = [each for each in pods if of_job(each) == job and owner(each) != STRANGER]
            workers = [each for each in ours if not is_launcher(each)]
            if (outcome := self.outcomes.get(job)) and all(each["status"]["phase"] == "Running" for each in workers):
                await self._status(kinds.POD, pod, {"phase": "Succeeded" if outcome == "Complete" else "Failed"})
        elif not is_launcher(pod) and meta["uid"] not in self._named:
            self._named.add(meta["uid"])
            labels = {"kubernetes.io/service-name": spec["subdomain"]}
            endpoint = {"addresses": ["10.9.8.7"], "hostname": spec["hostname"]}
            body = {"metadata": {"generateName": "names-", "labels": labels}, "addressType": "IPv4",
                    "endpoints": [endpoint]}  # fmt: skip
            await self.api.create(kinds.ENDPOINT_SLICE, self.namespace, body)

    async def _job_controller(self, job: Object, pods: list[Object]) -> None:
        status, alive = job.get("status", {}), [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        if any(each["type"] in {"Complete", "Failed"} for each in status.get("conditions", ())):
            return
        if job["spec"].get("suspend"):
            for pod in alive:
                meta = pod["metadata"]
                await self.api.delete(kinds.POD, self.namespace, meta["name"], meta["uid"])
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ended = [pod for pod in alive if pod["status"]["phase"] in {"Succeeded", "Failed"}]
        if ended:
            complete = ended[0]["status"]["phase"] == "Succeeded"
            types = ("SuccessCriteriaMet", "Complete") if complete else ("FailureTarget", "Failed")
            words = {} if complete else {"reason": "BackoffLimitExceeded", "message": "limit reached"}
            end: Object = {"conditions": [{"type": each, "status": "True", **words} for each in types],
                           "startTime": status.get("startTime") or now}  # fmt: skip
            end |= {"succeeded": 1, "completionTime": now} if complete else {"failed": 1}
            await self._status(kinds.JOB, job, end)
        elif not alive:
            if not status.get("startTime"):
                await self._status(kinds.JOB, job, {"startTime": now})
            template, meta = job["spec"]["template"], job["metadata"]
            labels = {**template["metadata"]["labels"], **job["spec"]["selector"]["matchLabels"]}
            reference = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"],
                         "controller": True}  # fmt: skip
            metadata = {**template["metadata"], "labels": labels, "ownerReferences": [reference]}
            metadata["generateName"] = f"{meta['name']}-"
            await self.api.create(kinds.POD, self.namespace, {"metadata": metadata, "spec": template["spec"]})

    async def _garbage_collector(self) -> None:
        objects = [(kind, each) for kind in OWNED for each in await self.all(kind)]
        jobs = await self.all(kinds.MPI_JOB)
        alive = {each["metadata"]["uid"] for each in (*jobs, *(each for _, each in objects))}
        for kind, each in objects:
            if (uid := owner(each)) and uid not in alive and uid != STRANGER:
                meta = each["metadata"]
                await self.api.delete(kind, self.namespace, meta["name"], meta["uid"])


STRANGER = "0f5a7e6c-0000-4000-8000-000000000000"  # the owner of objects that the operator must not touch


def owner(found: Object) -> str:
    references = found["metadata"].get("ownerReferences") or [{}]
    uid: str = references[0].get("uid", "")
    return uid


def of_job(pod: Object) -> str:
    name: str = (pod["metadata"].get("labels") or {}).get("training.kubeflow.org/job-name", "")
    return name


def is_launcher(pod: Object) -> bool:
    return (pod["metadata"].get("labels") or {}).get("training.kubeflow.org/job-role") == "launcher"
