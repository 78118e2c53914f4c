"""The API server goes away and comes back, while the operator runs as an installation runs it: with a lease."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import requests
import yaml

from mpiboot.controller import cache, lease, preflight
from mpiboot.controller.cache import Cache
from mpiboot.kube import kinds, outage
from mpiboot.kube.api import Api, Request
from mpiboot.kube.api_error import NotLeadingError
from mpiboot.kube.connection import connect
from mpiboot.kube.projections import config_map_view
from tests.cable import Cable
from tests.controller.conftest import PATIENCE, eventually, holds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Kubernetes

    from tests.controller.conftest import Operator, World

    Start = Callable[..., Operator]

pytestmark = pytest.mark.usefixtures("unwatched")

LEASE = 3  # seconds: an outage of four is a long one


@pytest.fixture
def cable(api_server: Kubernetes, tmp_path: Path) -> Iterator[Cable]:
    """A way to the API server. `cable.kubeconfig` leads through it."""
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    cable = Cable(config["clusters"][0]["cluster"]["server"])
    config["clusters"][0]["cluster"]["server"] = cable.url
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    yield cable
    cable.close()


@pytest.fixture
def flags(cable: Cable, tmp_path: Path, bare_world: World) -> tuple[str, ...]:
    """Of an operator behind the cable, with leader election, for one namespace."""
    assert cable.plugged
    namespace = bare_world.namespace
    return (f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--namespace={namespace}", f"--lock-namespace={namespace}",
            f"--lease-seconds={LEASE}")  # fmt: skip


def leads(operator: Operator) -> bool:
    return operator.metric("mpi_operator_is_leader") == 1


def test_a_leader_that_loses_the_api_server_steps_down_and_leads_again(
    start_operator: Start, cable: Cable, flags: tuple[str, ...], bare_world: World
) -> None:
    world = bare_world
    operator = start_operator(*flags)
    world.submit(name="before")
    world.started(name="before")
    cable.plugged = False
    eventually("an operator that stepped down", lambda: not leads(operator))
    world.submit(name="meanwhile")
    holds(lambda: operator.process.poll() is None and not world.workers("meanwhile"), LEASE)
    # Its caches are as they were, and so the check-in goes on.
    assert requests.get(f"{operator.monitoring}/readyz", timeout=PATIENCE).ok
    cable.plugged = True
    world.started(name="meanwhile")
    assert leads(operator)
    assert operator.stop(signal.SIGTERM) == 0


def test_an_operator_that_starts_during_an_outage_waits_for_its_end(
    start_operator: Start, cable: Cable, flags: tuple[str, ...], bare_world: World
) -> None:
    cable.plugged = False
    operator = start_operator(*flags, ready=False)
    eventually("health", lambda: _answers(operator))
    eventually("several tries", lambda: cable.refused > 4)
    assert operator.process.poll() is None
    assert requests.get(f"{operator.monitoring}/readyz", timeout=PATIENCE).status_code == 503
    cable.plugged = True
    bare_world.submit()
    bare_world.started()
    cable.plugged = False
    assert operator.stop(signal.SIGTERM) == 0  # without the API server it cannot release its Lease


def _answers(operator: Operator) -> bool:
    with suppress(requests.ConnectionError):
        return requests.get(f"{operator.monitoring}/healthz", timeout=PATIENCE).ok
    return False


def test_a_leader_that_was_stopped_for_longer_than_its_lease_follows_the_next_one(
    start_operator: Start, flags: tuple[str, ...], bare_world: World
) -> None:
    """As in a virtual machine that was suspended: the first one wakes up in the middle of its work."""
    world = bare_world
    first = start_operator(*flags)
    for number in range(10):
        world.submit(name=f"job{number}")
    first.process.send_signal(signal.SIGSTOP)
    second = start_operator(*flags)
    first.process.send_signal(signal.SIGCONT)
    eventually("one leader", lambda: not leads(first))
    for number in range(10):
        world.started(name=f"job{number}")
    assert leads(second)
    assert first.process.poll() is None
    first.stop(signal.SIGKILL)
    second.stop(signal.SIGKILL)


def test_requests_end_with_the_lease(tmp_path: Path, api_server: Kubernetes) -> None:
    assert tmp_path.exists()

    async def main() -> None:
        left = 1.0
        async with Api(await connect(str(api_server.kubeconfig))) as api:
            acting = api.fenced(lambda: left)
            await acting.send(Request("GET", "/version"))
            left = 0.0
            with pytest.raises(NotLeadingError):
                await acting.send(Request("GET", "/version"))
            await api.send(Request("GET", "/version"))

    asyncio.run(main())


@pytest.mark.parametrize("jump", [(3600.0, 0.0), (0.0, 3600.0), (3600.0, 3600.0), (-3600.0, 3600.0)], ids=str)
def test_a_clock_that_jumps_ends_a_lease_too_early_and_never_too_late(
    jump: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended virtual machine: after it only one of the clocks may tell the time that has passed."""
    now = (100.0, 1000.0)
    monkeypatch.setattr(lease, "clocks", lambda: now)
    since = now
    now = (now[0] + jump[0], now[1] + jump[1])
    assert lease.elapsed(since) == 3600.0


def test_a_clock_that_is_set_back_does_not_make_a_lease_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "clocks", lambda: (107.0, -2000.0))
    assert lease.elapsed((100.0, 1000.0)) == 7.0


def test_the_end_of_an_outage_wakes_every_watch(
    api_server: Kubernetes, cable: Cable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "FIRST_PAUSE", 10 * PATIENCE)  # only the probe can wake it in time
    monkeypatch.setattr(preflight, "LONGEST_PAUSE", 10 * PATIENCE)
    monkeypatch.setattr(outage, "PROBE_EVERY", 0.1)
    assert api_server.kubeconfig.exists()

    async def main() -> None:
        cable.plugged = False
        async with Api(await connect(str(tmp_path / "kubeconfig"))) as api, asyncio.timeout(PATIENCE):
            known = [Cache(api, kind, config_map_view, lambda _: None) for kind in (kinds.CONFIG_MAP, kinds.SERVICE)]
            tasks = [asyncio.create_task(each) for each in (*(one.run() for one in known), api.outage.run(api.ready))]
            tasks.append(asyncio.create_task(preflight.check(api)))
            while not (api.outage.away and cable.refused > 10):
                await asyncio.sleep(0.05)
            cable.plugged = True
            for one in known:
                await one.synced.wait()
            for task in tasks:
                task.cancel()

    asyncio.run(main())
