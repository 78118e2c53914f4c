"""Carry out actions: the one place that changes a job's objects."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from mpiboot.controller import kinds
from mpiboot.controller.action import Action, Create, Delete, Patch
from mpiboot.controller.api_error import ApiError, TroubleError, UnreachableError
from mpiboot.controller.remake import FOLLOWED
from mpiboot.controller.view import job_key, meta

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.controller.action import Resume, Stage
    from mpiboot.controller.api import Api, Object
    from mpiboot.controller.kinds import Kind

log = logging.getLogger(__name__)

AT_ONCE = 32  # requests of one job; the API server is full at about that many


class ExistsError(TroubleError):
    """An object of the name belongs to somebody else. It is left as it is."""

    event = "ErrResourceExists"

    def __init__(self, kind: Kind, name: str) -> None:
        # The peers' words, which users search for.
        super().__init__(f'Resource "{name}" of Kind "{kind.name}" already exists and is not managed by MPIJob')


class RefusedError(TroubleError):
    """The API server refused an action: a quota is used up, a template is malformed, a right is missing."""

    event = "FailedCreate"

    def __init__(self, action: Action, error: ApiError) -> None:
        super().__init__(f"cannot {action}: {error}")
        if error.going_away:
            self.event = ""  # a namespace on its way out takes no events either


class FailingError(RefusedError):
    """The API server failed at an action, or what it asks did: a webhook, for one. It may do better the next time."""


class LeftoverError(TroubleError):
    """An object of an earlier job of the same name: the garbage collector is about to remove it."""

    def __init__(self, kind: Kind, name: str) -> None:
        super().__init__(f"waiting for {kind.name} {name} of an earlier job of this name to go")


class OnePairError(TroubleError):
    """The job's Secret is that of another operator, which makes one key pair for all: pods must be planned for that."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Secret {name} was made by another operator")


class Actor:
    """Acts for one job at a time. `learn` gets every object that the API server shows in an answer."""

    def __init__(self, api: Api, learn: Callable[[Kind, Object], None]) -> None:
        self._api = api
        self._learn = learn

    async def act(self, namespace: str, uid: str, stages: Sequence[Stage]) -> int:
        """Do all of it, and say how much that was. The first failure ends it, after what has been begun."""
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
            # Somebody was faster: the watch tells, and the next look decides anew.
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
                    raise error from None  # it went in between; the next try creates it
                raise
            theirs, ours = meta(found).owner, meta_owner(action.manifest)
            if theirs is None or theirs.uid != uid:
                same = theirs is not None and (theirs.kind, theirs.name) == ours
                raise (LeftoverError if same else ExistsError)(action.kind, name) from None
            if action.kind == kinds.SECRET:
                if action.manifest["data"].keys() - (found.get("data") or {}).keys():
                    raise OnePairError(name) from None
            elif job_key(found) is None:
                # Another operator made it for this job, without the labels by which we watch.
                adopted = {"metadata": {"labels": action.manifest["metadata"]["labels"]}}
                found = await self._api.patch(action.kind, namespace, name, adopted)
        self._learn(action.kind, found)

    async def _resume(self, namespace: str, action: Resume) -> None:
        found = await self._api.get(kinds.JOB, namespace, action.name)
        if found.get("status", {}).get("startTime"):
            # A Job's pod template can be changed only while the Job counts as never started.
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
    """Make these fields of a pod spec what is wanted: a queue does change them."""
    for field in FOLLOWED:
        if wanted.get(field):
            spec[field] = wanted[field]
        else:
            spec.pop(field, None)
