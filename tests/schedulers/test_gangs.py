"""Jobs that compete for room: with a gang scheduler each runs whole or waits whole, and all come to an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.controller.conftest import eventually, mpi_job
from tests.schedulers.conftest import Players

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.controller.conftest import Object, Operator, World

OWN = "mpiboot/openmpi"
JOBS = 20
WORKERS = 3
LONG = 240.0


def job(name: str, kind: str) -> Object:
    """A job whose pods take one CPU each. A launcher that is held back takes none: it comes when the room is full."""
    made = mpi_job(name, WORKERS, image=OWN, policy={"cleanPodPolicy": "All"})
    if kind == "gate":
        made["metadata"]["annotations"] = {"mpiboot.dev/launch": "gate"}
    if kind == "last":
        made["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    for role, replica in made["spec"]["mpiReplicaSpecs"].items():
        container = dict(replica["template"]["spec"]["containers"][0])
        held_back = role == "Launcher" and kind in ("gate", "last")
        container["resources"] = {"limits": {"cpu": "0" if held_back else "1"}}
        if role == "Launcher" and kind == "elastic":
            container["env"] = [{"name": "MPIBOOT_MIN_WORKERS", "value": "2"}]
        replica["template"] = {"spec": {"containers": [container]}}
    return made


def test_many_jobs_with_room_for_three_all_end(
    scheduler: str, world: World, start_operator: Callable[..., Operator]
) -> None:
    operator = start_operator(
        f"--namespace={world.namespace}", "--no-leader-election", f"--gang-scheduling={scheduler}"
    )
    kinds = {f"job-{number}": ("whole", "elastic", "gate", "last")[number % 4] for number in range(JOBS)}
    with Players(world, lambda name: 2 if kinds[name] == "elastic" else WORKERS) as players:
        for name, kind in kinds.items():
            world.create("MPIJob", job(name, kind))
        eventually("all jobs have succeeded", lambda: succeeded(world) == set(kinds), LONG)
        eventually("no group is left", lambda: not groups(world, scheduler))
    assert players.most_at_once <= 4
    operator.stop(15)


def succeeded(world: World) -> set[str]:
    return {each["metadata"]["name"] for each in world.all("MPIJob") if is_true(each, "Succeeded")}


def is_true(job: Object, condition: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def groups(world: World, scheduler: str) -> list[Any]:
    version = {"volcano": "scheduling.volcano.sh/v1beta1"}.get(scheduler, "scheduling.x-k8s.io/v1alpha1")
    path = f"/apis/{version}/namespaces/{world.namespace}/podgroups"
    found: list[Any] = world.client.do("GET", path)["items"]
    return found
