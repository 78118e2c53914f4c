"""How long the largest manifests that are not refused hold the operator: no single one may take more than 50 ms."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from bench.harness import Row
from mpiboot.controller.decide import MOST_AT_ONCE
from mpiboot.job.plan.plan import plan
from mpiboot.job.read.manifest import Manifest
from mpiboot.job.read.read import read
from mpiboot.job.settings import Settings
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = 20
LIMIT = 50  # ms
VALUES = 19_500  # a manifest with 20,000 is refused, and so is one with
TEXT = 255 * 1024  # 256 KiB of text


def measure() -> list[Row]:
    """A look reads the manifest, plans the job, and makes the first workers' manifests; nothing else runs meanwhile."""
    return [Row(what, "ms", [_look(manifest()) for _ in range(TIMES)], limit=LIMIT) for what, manifest in WORST.items()]


def _look(manifest: dict[str, Any]) -> float:
    begun = time.perf_counter()
    job = read(Manifest(manifest)).job
    made = plan(job, MATERIAL, Settings(checkin_urls=("http://a",), delivery_image="d"))
    for worker in islice(made.workers, MOST_AT_ONCE):
        assert worker
    return (time.perf_counter() - begun) * 1000


def _job(worker: dict[str, Any] | None = None, workers: int = 2, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    launcher = {"name": "launcher", "image": "image", "command": ["mpirun", "program"]}
    roles = {
        "Launcher": {"template": {"spec": {"containers": [launcher]}}},
        "Worker": {
            "replicas": workers,
            "template": {"spec": {"containers": [{"name": "worker", "image": "image", **(worker or {})}]}},
        },
    }
    metadata = {"name": "job", "namespace": "default", "uid": "uid", "generation": 1}
    spec = {"mpiReplicaSpecs": roles, **spec}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata, "spec": spec}


def _unknown_fields() -> dict[str, Any]:
    unknown: dict[str, Any] = {f"unknown{number}": 1 for number in range(VALUES)}
    return _job(**unknown)


def _variables(workers: int = 2) -> dict[str, Any]:
    variables = [{"name": f"N{number}", "value": "x"} for number in range(VALUES // 3)]
    return _job({"env": variables}, workers)


def _a_long_command() -> dict[str, Any]:
    return _job({"args": ["sshd -p " * (TEXT // 8)]})


def _many_words() -> dict[str, Any]:
    return _job({"command": ["sshd"] * VALUES})


def _levels() -> dict[str, Any]:
    inner: Any = 1
    for _ in range(90):
        inner = {"a": inner}
    return _job(extra=[inner] * (VALUES // 91))


def _workers() -> dict[str, Any]:
    return _job(workers=5000)


MATERIAL = generate("ed25519")
WORST: dict[str, Callable[[], dict[str, Any]]] = {
    f"{VALUES:,} unknown fields": _unknown_fields,
    f"{VALUES // 3:,} variables": _variables,
    "a command of 255 KiB": _a_long_command,
    f"a command of {VALUES:,} words": _many_words,
    "90 levels": _levels,
    "5,000 workers": _workers,
    f"5,000 workers with {VALUES // 3:,} variables": lambda: _variables(5000),
}
