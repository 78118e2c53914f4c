
"""The mistakes that guides warn of, each from both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.arrangement import arrange
from mpiboot.job.check.traps import traps
from mpiboot.job.read.manifest import Manifest, load
from mpiboot.job.read.read import read
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.model import Job
    from mpiboot.job.problems import Problem
    from mpiboot.job.read.read import ReadJob

LAUNCHER, WORKER = (f"spec.mpiReplicaSpecs.{role}.template.spec.containers[0]" for role in ("Launcher", "Worker"))
CONTAINER = "template.spec.containers.0"


def runs(*command: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {f"Launcher.{CONTAINER}.command": list(command), **more}


def with_slots(slots: int, *command: str) -> dict[str, Any]:
    return runs(*command, **{"spec.slotsPerWorker": slots})


TRAPS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "as many ranks as slots": (runs("mpirun", "-n", "2", "app"), []),
    "no number": (runs("mpirun", "app"), []),
    "more ranks than slots": (
        runs("mpirun", "-n", "4", "app"), [f"{LAUNCHER}: asks for 4 ranks, but there are 2 slots: 2 x 1"]),
    "more ranks in a shell": (
        runs("/bin/bash", "-c", "cd /x; mpirun --allow-run-as-root -np 4 app"),
        [f"{LAUNCHER}: asks for 4 ranks, but there are 2 slots: 2 x 1"],
    ),
    "more ranks behind mpiboot": (
        runs("mpiboot", "launch", "--", "mpiexec", "-n", "4", "app"),
        [f"{LAUNCHER}: asks for 4 ranks, but there are 2 slots: 2 x 1"],
    ),
    "more ranks, meant so": (runs("mpirun", "--oversubscribe", "-n", "4", "app"), []),
    "more ranks, mapped so": (runs("mpirun", "--map-by", ":OVERSUBSCRIBE", "-n", "4", "app"), []),
    "several programs": (runs("mpirun", "-n", "1", "a", ":", "-n", "1", "b"), []),
    "a number for the program": (runs("mpirun", "app", "-n", "100"), []),
    "a worker without a rank": (
        with_slots(4, "mpirun", "-n", "4", "app"),
        [f"{LAUNCHER}: asks for 4 ranks, and there are 8 slots (2 x 4): 1 of 2 hosts can go without a rank"],
    ),
    "a slot to spare": (with_slots(2, "mpirun", "-n", "3", "app"), []),
    "an elastic job": (
        runs("horovodrun", "-np", "1", "--max-np", "3", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "x"),
        []),
    "two images": (
        {f"Worker.{CONTAINER}.image": "me/other"},
        [f"{WORKER}.image: is me/other, the launcher's is me/app: program and MPI must be the same in both"],
    ),
    "keys of root for a user": (
        {f"Worker.{CONTAINER}.securityContext": {"runAsUser": 1000}},
        [(
            f"{WORKER}: runs as user 1000, whose SSH looks for keys in its own home, not in /root/.ssh: set "
            "spec.sshAuthMountPath to that home's .ssh"
        )],
    ),
    "keys of a user for root": (
        {"Launcher.template.spec.securityContext": {"runAsUser": 0}, "spec.sshAuthMountPath": "/home/user/.ssh"},
        [(
            f"{LAUNCHER}: runs as root, whose SSH looks for keys in /root, not in /home/user/.ssh: set "
            "spec.sshAuthMountPath to that home's .ssh"
        )],
    ),
    "keys where they belong": (
        {"Launcher.template.spec.securityContext": {"runAsUser": 1000}, "spec.sshAuthMountPath": "/home/user/.ssh"},
        []),
    "keys of another user": (
        {"spec.sshAuthMountPath": "/home/user/.ssh",
         f"Worker.{CONTAINER}.command": ["/usr/sbin/sshd", "-f", "/home/mpiuser/.sshd_config"]},
        [(
            f"{WORKER}: refers to /home/mpiuser, but the SSH keys are in /home/user/.ssh; check which user the "
            "container runs as"
        )],
    ),
    "keys of this very user": (
        {"spec.sshAuthMountPath": "/home/user/.ssh", f"Worker.{CONTAINER}.workingDir": "/home/user/work"}, []),
    "keys of another user, by a variable": (
        {"spec.sshAuthMountPath": "/home/user/.ssh", f"Worker.{CONTAINER}.env": [{"name": "USER", "value": "me"}]},
        [(
            f"{WORKER}: refers to /home/me, but the SSH keys are in /home/user/.ssh; check which user the container "
            "runs as"
        )],
    ),
    "data below /home": (
        {"spec.sshAuthMountPath": "/home/user/.ssh",
         f"Worker.{CONTAINER}.env": [{"name": "DATA", "value": "/home/data"}]}, []),
    "the old agent": (
        {f"Launcher.{CONTAINER}.env": [{"name": "OMPI_MCA_plm_rsh_agent", "value": "/etc/mpi/kubexec.sh"}]},
        [f"{LAUNCHER}: kubexec.sh does not exist any more: mpirun starts ranks by SSH; remove this setting"],
    ),
}  # fmt: skip


def found_traps(job: Job, settings: Settings) -> list[Problem]:
    return list(traps(arrange(job, settings)))


@pytest.mark.parametrize("name", TRAPS)
def test_traps(read_small: Callable[..., ReadJob], name: str) -> None:
    changes, messages = TRAPS[name]
    assert [problem.text() for problem in found_traps(read_small(changes).job, Settings())] == messages


def test_images_of_ours_take_keys_from_anywhere(read_small: Callable[..., ReadJob]) -> None:
    changes = {f"{role}.{CONTAINER}.securityContext": {"runAsUser": 1000} for role in ("Launcher", "Worker")}
    assert found_traps(read_small(changes).job, Settings(own_images=frozenset({"me/app"}))) == []


def test_paths_of_v1alpha1_are_its_own(manifest: Callable[[str], Manifest]) -> None:
    data = dict(manifest("v1alpha1.yaml").data)
    container = {**data["spec"]["template"]["spec"]["containers"][0], "command": ["mpirun", "-n", "32", "x"]}
    spec = {**data["spec"], "template": {"spec": {"containers": [container]}}}
    found = found_traps(read(Manifest({**data, "spec": spec})).job, Settings())
    assert [problem.path for problem in found] == ["spec.template.spec.containers[0]"]


def test_the_guides_manifest_walks_into_none(manifest: Callable[[str], Manifest]) -> None:
    assert found_traps(read(manifest("cert-guide.yaml")).job, Settings()) == []


def test_an_unquoted_number_of_ranks_is_reported_and_understood() -> None:
    text = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
            - {name: launcher, image: me/app, command: [mpirun], args: [-n, 4, app]}
    Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: me/app}]}}}
"""
    found = read(load(text, "pi.yaml"))
    assert [problem.text("pi.yaml") for problem in found.warnings] == [
        f"pi.yaml:11: {LAUNCHER}.args[1]: must be text, is 4: put it in quotes; used as '4'"
    ]
    assert [problem.text() for problem in found_traps(found.job, Settings())] == [
        f"{LAUNCHER}: asks for 4 ranks, but there are 2 slots: 2 x 1"
    ]
