"""The operator looks for other MPI operators before its first job. No cluster: a script answers for leases."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from mpiboot.controller import settings
from mpiboot.controller.operator_process import Replica
from mpiboot.controller.preflight import Peers
from mpiboot.kube.api import Api
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.kube.api import Object
    from mpiboot.kube.kinds import Kind

HELD = {"spec": {"holderIdentity": "them", "renewTime": "2026-01-02T03:04:05.000000Z", "leaseDurationSeconds": 15}}


async def _nobody() -> Mapping[str, str]:
    return {}


class Leases(Api):
    """An API server that answers for leases with the given answers, in turn."""

    def __init__(self) -> None:
        super().__init__(Connection("http://127.0.0.1:1", None, _nobody, "default"))
        self.answers: asyncio.Queue[Object | Exception] = asyncio.Queue()

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:  # noqa: ARG002 (only leases are asked for)
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_no_job_is_reconciled_before_the_leases_of_other_operators_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[tuple[str, str]] = []

    async def handle(replica: Replica, key: str) -> None:
        handled.append((key, replica._peers.holder))

    monkeypatch.setattr(Replica, "_handle", handle)

    async def main() -> None:
        api = Leases()
        replica = Replica(api, settings.make({"peer_leases": "theirs/lease"}))
        for cache in replica._caches.all().values():
            cache.synced.set()
        replica._queue.add("default/job")
        work = [asyncio.create_task(each) for each in (replica._work(), replica._peers.run())]
        await asyncio.sleep(0.1)
        assert handled == []
        api.answers.put_nowait(HELD)
        await asyncio.sleep(0.1)
        assert [key for key, _ in handled] == ["default/job"]
        assert handled[0][1].startswith("lease theirs/lease, held by them")
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (HELD, True),
        (ApiError(404, "NotFound", ""), True),
        (ApiError(403, "Forbidden", ""), True),
        (ApiError(503, "ServiceUnavailable", ""), False),
        (UnreachableError("cut off"), False),
    ],
    ids=["held", "absent", "not for us", "broken", "unreachable"],
)
def test_only_an_answer_counts_as_a_read_lease(answer: Object | Exception, *, known: bool) -> None:
    async def main() -> None:
        api = Leases()
        peers = Peers(api, ["theirs/lease"], lambda: None)
        api.answers.put_nowait(answer)
        await peers.look()
        assert peers.known.is_set() == known

    asyncio.run(main())
