"""Carry out actions. Nothing else changes a job's objects."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mpiboot.controller.decide import FOLLOWED, Action, Create, Delete, Patch
from mpiboot.kube import kinds
from mpiboot.kube.api_error import ApiError, TroubleError, UnreachableError
from mpiboot.kube.projections import job_key, meta

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.controller.decide import Resume, Stage
    from mpiboot.kube.api import Api, Object
    from mpiboot.kube.kinds import Kind

log = logging.getLogger(__name__)

# Two jobs that each hold a part of a quota wait for each other for ever. A scheduler does not see the missing pods.
SHARED_QUOTA = "the job keeps its pods and waits for the quota; Kueue starts only jobs that fit into it as a whole; "
AT_ONCE = 32  # requests of one job at the same time; more do not make the API server faster


class ExistsError(TroubleError):
    """An object of the name has another owner. The operator does not change it."""

    event = "ErrResourceExists"

    def __init__(self, kind: Kind, name: str) -> None:
        # mpi-operator's message, which users search for.
        super().__init__(f'Resource "{name}" of Kind "{kind.name}" already exists and is not managed by MPIJob')


class RefusedError(TroubleError):
    """The API server refused an action: a quota is used up, a template is malformed, a right is missing."""

    event = "FailedCreate"

    def __init__(self, action: Action, error: ApiError) -> None:
        quota = isinstance(action, Create) and action.kind == kinds.POD and "exceeded quota" in str(error)
        super().__init__(f"{SHARED_QUOTA if quota else ''}cannot {action}: {error}")
        self.retry_after = error.retry_after
        if error.going_away:
            self.event = ""  # a namespace that is being deleted takes no events either


class FailingError(RefusedError):
    """The API server failed at an action, or a webhook did that it calls. The next try may succeed."""


class LeftoverError(TroubleError):
    """An object of an earlier job of the same name, which the garbage collector will delete."""

    def __init__(self, kind: Kind, name: str) -> None:
        super().__init__(f"waiting until {kind.name} {name} of an earlier job of this name is deleted")


class OnePairError(TroubleError):
    """Another operator made the job's Secret, with one key pair for all pods: the plan must use that pair."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Secret {name} was made by another operator")


class Actor:
    """Carries out the actions of one job. `learn` receives every object that an answer of the API server holds."""

    def __init__(self, api: Api, learn: Callable[[Kind, Object], None]) -> None:
        self._api = api
        self._learn = learn

    async def act(self, namespace: str, uid: str, stages: Sequence[Stage]) -> int:
        """Carry out all stages; the number of actions. After the first failure no further action begins."""
        done = 0
        for stage in stages:
            done += await self._all(namespace, uid, stage.actions)
        return done

    async def _all(self, namespace: str, uid: str, actions: Sequence[Action]) -> int:
        queue = iter(actions)
        failures: list[Exception] = []

        async def work() -> None:
            for action in queue:
                if failures:
                    return
                try:
                    await self._one(namespace, uid, action)
                except (TroubleError, UnreachableError, ApiError) as error:
                    failures.append(error)

        if len(actions) == 1:
            await work()
        else:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(actions))):
                    group.create_task(work())
        if failures:
            raise failures[0]
        return len(actions)

    async def _one(self, namespace: str, uid: str, action: Action) -> None:
        log.debug("%s", action)
        try:
            match action:
                case Create():
                    await self._create(namespace, uid, action)
                case Delete():
                    await self._api.delete(action.kind, namespace, action.name, action.uid)
                case Patch():
                    found = await self._api.patch(action.kind, namespace, action.name, action.patch, form=action.form)
                    self._learn(action.kind, found)
                case _:
                    await self._resume(namespace, action)
        except ApiError as error:
            # Another client was faster. The watch brings the change, and the next look decides again.
            if error.not_found and isinstance(action, Patch):
                return
            if error.conflict or error.throttled:
                raise
            raise (FailingError if error.status >= 500 else RefusedError)(action, error) from error

    async def _create(self, namespace: str, uid: str, action: Create) -> None:
        try:
            found = await self._api.create(action.kind, namespace, action.manifest)
        except ApiError as error:
            if not error.already_exists:
                raise
            name = action.manifest["metadata"]["name"]
            try:
                found = await self._api.get(action.kind, namespace, name)
            except ApiError as gone:
                if gone.not_found:
                    raise error from None  # it was deleted in between; the next try creates it
                raise
            theirs, ours = meta(found).owner, meta_owner(action.manifest)
            if theirs is None or theirs.uid != uid:
                same = theirs is not None and (theirs.kind, theirs.name) == ours
                raise (LeftoverError if same else ExistsError)(action.kind, name) from None
            if action.kind == kinds.SECRET:
                if action.manifest["data"].keys() - (found.get("data") or {}).keys():
                    raise OnePairError(name) from None
            elif job_key(found) is None:
                # Another operator made it for this job, without the labels that the watches select.
                adopted = {"metadata": {"labels": action.manifest["metadata"]["labels"]}}
                found = await self._api.patch(action.kind, namespace, name, adopted)
        self._learn(action.kind, found)

    async def _resume(self, namespace: str, action: Resume) -> None:
        found = await self._api.get(kinds.JOB, namespace, action.name)
        if found.get("status", {}).get("startTime"):
            # A Job's pod template can be changed only while the Job has no start time.
            patch = {"status": {"startTime": None}}
            found = await self._api.patch(kinds.JOB, namespace, action.name, patch, subresource="status")
        template = found["spec"]["template"]
        for field in ("labels", "annotations"):
            wanted = action.template.get("metadata", {}).get(field) or {}
            if wanted:
                template["metadata"][field] = {**(template["metadata"].get(field) or {}), **wanted}
        _replace(template["spec"], action.template["spec"])
        found["spec"]["suspend"] = False
        self._learn(kinds.JOB, await self._api.replace(kinds.JOB, namespace, action.name, found))


def meta_owner(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of the owner that a manifest names."""
    reference = manifest["metadata"]["ownerReferences"][0]
    return reference["kind"], reference["name"]


def _replace(spec: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    """Set the fields of a pod spec that a queueing system changes."""
    for field in FOLLOWED:
        if wanted.get(field):
            spec[field] = wanted[field]
        else:
            spec.pop(field, None)
