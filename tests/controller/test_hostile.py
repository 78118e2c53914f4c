"""Objects that any user may write into a cluster: none may end the operator, block it or fill its memory."""

from __future__ import annotations

import copy
import json
import random
import resource
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any, cast

import pytest

from mpiboot.controller.install.crd import VERSIONS
from mpiboot.controller.operator_process import caches
from mpiboot.controller.settings import make
from mpiboot.job import elastic, quick
from mpiboot.job.errors import UserError
from mpiboot.job.model import Job, Replica
from mpiboot.job.plan import host_lists
from mpiboot.job.plan.plan import plan
from mpiboot.job.problems import MOST, ManifestError
from mpiboot.job.read import v1alpha1
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.job.settings import Settings
from mpiboot.ssh.keys import generate
from tests.controller.conftest import mpi_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpiboot.kube.api import Api

CPU_SECONDS = 20  # many times what these texts take; the patterns that were here before took hours


@pytest.mark.parametrize("line", ["a slots=" + "9" * 4301, "a:" + "9" * 4301, "a slots=²", "a" * 10**6 + " slots=1"])
def test_a_hostfile_with_an_absurd_number_is_an_odd_one(line: str) -> None:
    assert host_lists.read_hostfile(line) is None


LONG = ["sshd ", "sshd -p ", "sshd -o ", "sshd -f ';", "sshd -" + "D" * 99, "sshd" + " " * 99]


@pytest.mark.parametrize("args", LONG)
def test_a_long_command_is_searched_in_a_time_that_grows_with_its_length(args: str) -> None:
    script = (
        "from mpiboot.job.plan import sshd\n"
        f"container = {{'args': [{args!r} * (10**6 // {len(args)})]}}\n"
        "sshd.probe(container)\n"
    )
    limited = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
    )
    assert limited.returncode == 0


NUMBERS = ["9" * 4301, "²", "٣", "-1", ""]


@pytest.mark.parametrize("number", NUMBERS, ids=["long", "superscript", "arabic", "negative", "none"])
def test_an_absurd_number_in_a_command_counts_as_not_given(number: str) -> None:
    assert elastic.of_words(["horovodrun", "-np", number, "--host-discovery-script", "x"]) == elastic.Elastic()
    assert quick.own_count(["mpirun", "-n", number, "./program"]) is None
    assert v1alpha1.limit(template({"resources": {"limits": {"nvidia.com/gpu": number}}}), "nvidia.com/gpu") == 0
    container = {"env": [{"name": elastic.MIN_WORKERS, "value": number}]}
    assert elastic.of_job(Job("job", "default", Replica(1, template(container), "Never"))) is None


def template(container: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [container]}}


def job_of(**spec: Any) -> dict[str, Any]:  # noqa: ANN401
    found = mpi_job(**spec)
    return {**found, "metadata": {"name": "job", "namespace": "default", "uid": "uid", "generation": 1}}


def deep(levels: int) -> Any:  # noqa: ANN401
    inner: Any = 1
    for _ in range(levels):
        inner = {"a": inner}
    return inner


TOO_LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "workers": (job_of(workers=2**31 - 1), "spec.mpiReplicaSpecs.Worker.replicas: must be <= 5000, is 2147483647"),
    "slots": (job_of(slotsPerWorker=2**31 - 1), "spec.slotsPerWorker: must be <= 65535, is 2147483647"),
    "text": (job_of(extra="x" * (256 * 1024)), "spec: must hold at most 256 KiB of text"),
    "names of fields": (job_of(**{"x" * (256 * 1024): 1}), "spec: must hold at most 256 KiB of text"),
    "values": (job_of(extra=[0] * 20_000), "spec: must hold at most 20000 values"),
    "levels": (job_of(extra=deep(2000)), "spec: must not be nested deeper than 100 levels"),
}


@pytest.mark.parametrize(("manifest", "message"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_refused_before_anything_is_made_of_it(manifest: dict[str, Any], message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ManifestError) as error:
            read(Manifest(manifest))
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert message in str(error.value).splitlines()


def test_workers_of_the_first_operators_jobs_have_the_same_limit() -> None:
    old = {**job_of(), "apiVersion": "kubeflow.org/v1alpha1"}
    old["spec"] = {"gpus": 2**30, "gpusPerNode": 1, "template": template({"image": "x"})}
    with pytest.raises(ManifestError, match="spec: makes 1073741824 workers, at most 5000 are possible"):
        read(Manifest(old))


def test_an_installation_may_set_the_number_of_workers() -> None:
    assert read(Manifest(job_of(workers=5000))).job.workers == 5000
    assert read(Manifest(job_of(workers=6000)), max_workers=6000).job.workers == 6000
    with pytest.raises(ManifestError, match="must be <= 10, is 11"):
        read(Manifest(job_of(workers=11)), max_workers=10)
    with pytest.raises(UserError, match=r"--max-workers .*: must be at most 100000, is 100001"):
        make({"max_workers": 100_001})


def test_thousands_of_mistakes_are_counted_and_the_first_ones_named() -> None:
    unknown = {f"unknown{number}": 1 for number in range(15_000)}
    found = read(Manifest(job_of(**unknown)))
    assert len(found.warnings) == MOST + 1
    assert found.warnings[-1].text() == f"and {15_000 - MOST} more warnings"
    labels = {f"label{number}": 1 for number in range(15_000)}
    bad = {**job_of(), "metadata": {**job_of()["metadata"], "labels": labels}}
    with pytest.raises(ManifestError) as error:
        read(Manifest(bad))
    assert error.value.problems[-1].text() == f"and {15_000 - MOST} more errors"
    with pytest.raises(ManifestError) as error:
        read(Manifest(job_of(mpiImplementation="x" * 100_000)))
    assert len(str(error.value)) < 1000


HOSTILE: list[Any] = [
    None, True, -1, 0, 2**31, 2**63, 10**30, 1e308, float("inf"), "", "x" * 5000, "9" * 5000, "²", "\x00\x1b[2J",
    "ü\ud800",
    [], {}, [None], [[]], [{}], {"": None}, {"name": {}}, {"a": {"b": []}}, ["sshd -p "] * 50, "sshd -p 99999999999",
    "--min-np=" + "9" * 5000, deep(60), "mpiboot", "/" * 5000, ":::", "a b\nc",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def spoilt(manifest: Any, chance: random.Random) -> Any:  # noqa: ANN401
    """A copy in which a few places hold something else, or another name."""
    found = copy.deepcopy(manifest)
    for _ in range(chance.choice((1, 1, 2, 5))):
        *path, last = chance.choice([place for place in places(found) if place])
        above = found
        for step in path:
            above = above[step]
        if isinstance(above, dict) and chance.random() < 0.2:
            above[chance.choice(["odd", "x" * 300, "", "a.b/c"])] = above.pop(last)
        else:
            above[last] = copy.deepcopy(chance.choice(HOSTILE))
    return found


def full(version: str) -> dict[str, Any]:
    """A manifest in which many fields are given."""
    pod = template({
        "name": "main", "image": "image", "command": ["horovodrun", "-np", "2", "--host-discovery-script", "x"],
        "args": ["/usr/sbin/sshd", "-p", "2022"], "env": [{"name": "MPIBOOT_MIN_WORKERS", "value": "1"}],
        "ports": [{"name": "ssh", "containerPort": 22}], "volumeMounts": [{"name": "v", "mountPath": "/root/.ssh"}],
        "securityContext": {"runAsUser": 1000}, "resources": {"limits": {"nvidia.com/gpu": 1}},
    })  # fmt: skip
    pod["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    pod["spec"] |= {"volumes": [{"name": "v"}], "securityContext": {"fsGroup": 5}, "nodeSelector": {"a": "b"},
                    "dnsConfig": {"searches": ["a"]}, "initContainers": [{"name": "i"}]}  # fmt: skip
    spec: dict[str, Any] = {"gpus": 4, "gpusPerNode": 2, "template": pod, "slotsPerWorker": 2}
    if version != "v1alpha1":
        roles = {"Launcher": {"template": pod}, "Worker": {"template": copy.deepcopy(pod), "replicas": 2}}
        policy = {"cleanPodPolicy": "All", "backoffLimit": 3, "suspend": False, "schedulingPolicy": {"queue": "q"}}
        spec = {"mpiReplicaSpecs": roles, "runPolicy": policy, "slotsPerWorker": 2, "mainContainer": "main"}
    annotations = {"mpiboot.dev/launch": "gate", "mpiboot.dev/host-keys": "off"}
    metadata = {"name": "job", "namespace": "default", "uid": "uid", "annotations": annotations, "labels": {"a": "b"}}
    return {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("version", VERSIONS)
def test_whatever_stands_in_a_manifest_it_is_refused_or_planned(version: str) -> None:
    chance = random.Random(1)
    material = generate("ed25519")
    settings = Settings(checkin_urls=("http://a",), delivery_image="d")
    planned = refused = 0
    for _ in range(1500):
        manifest = spoilt(full(version), chance)
        try:
            job = read(Manifest(manifest)).job
        except ManifestError:
            refused += 1
            continue
        made = plan(job, material, settings)
        for each in (made.launcher, made.config_map, made.service, *made.workers[:2]):
            json.dumps(each)
        planned += 1
    assert min(planned, refused) > 100


NAMED = {"name": "job-worker-1", "namespace": "default", "uid": "u", "resourceVersion": "7",
         "labels": {"training.kubeflow.org/job-name": "job", "training.kubeflow.org/job-role": "launcher"},
         "annotations": {"mpiboot.dev/made-from": "x"},
         "ownerReferences": [{"controller": True, "kind": "MPIJob", "name": "job", "uid": "uid"}]}  # fmt: skip
ENDED = {"terminated": {"exitCode": 1, "reason": "OOMKilled", "message": "m", "signal": 9, "finishedAt": "2026"}}
OBJECTS: dict[str, dict[str, Any]] = {
    "pods": {"spec": {"schedulingGates": [{"name": "g"}], "nodeName": "n"}, "status": {
        "phase": "Pending", "podIP": "10.0.0.1", "conditions": [{"type": "PodScheduled", "status": "False"}],
        "containerStatuses": [{"restartCount": 1, "state": ENDED, "lastState": ENDED}]}},
    "jobs": {"spec": {"suspend": False, "backoffLimit": 6}, "status": {
        "failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}},
    "services": {"spec": {"selector": {"a": "b"}, "publishNotReadyAddresses": True}},
    "config_maps": {"data": {"hostfile": "a slots=1\n"}},
    "mpi_jobs": {"spec": {}},
}  # fmt: skip


@pytest.mark.parametrize("kind", OBJECTS)
def test_whatever_stands_in_an_object_it_is_kept_or_skipped(kind: str) -> None:
    chance = random.Random(2)
    skipped: list[Exception] = []
    cache = getattr(caches(cast("Api", None), "", lambda _: None, lambda _, __, error: skipped.append(error)), kind)
    good = {"metadata": NAMED, **OBJECTS[kind]}
    for version in range(1500):
        found = spoilt(good, chance)
        if isinstance(found, dict):
            cache._take(chance.choice(["ADDED", "MODIFIED", "DELETED"]), found)
        cache._take("MODIFIED", {**good, "metadata": {**NAMED, "resourceVersion": str(10 + version)}})
    assert skipped
    assert tuple(cache.keys())
