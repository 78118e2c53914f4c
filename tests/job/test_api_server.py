"""A real API server accepts every object of a plan, and tells the same about odd fields as we do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.fixtures import Kubernetes

    from mpiboot.job.plan.plan import Plan

SETTINGS: dict[str, Any] = {"checkin_urls": ("http://10.0.0.1:8080",), "own_images": frozenset({"me/app"})}


def objects(plan: Plan, namespace: str) -> str:
    """The plan as kubectl takes it."""
    items: list[Any] = [plan.secret, plan.config_map, plan.service, *plan.workers, plan.launcher]
    moved = [{**item, "metadata": {**item["metadata"], "namespace": namespace}} for item in items]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": moved})


@pytest.mark.parametrize("name", ["cert-guide.yaml", "pi.yaml", "root-working-launcher.yaml", "odd.yaml"])
@pytest.mark.parametrize("settings", [{}, SETTINGS], ids=["foreign", "ours"])
def test_every_object_is_accepted(
    api_server: Kubernetes,
    api_namespace: Callable[[], str],
    planned: Callable[..., Plan],
    name: str,
    settings: dict[str, Any],
) -> None:
    plan = planned(name, **settings)
    namespace = api_namespace()
    strict = "warn" if name == "odd.yaml" else "strict"
    given = objects(plan, namespace)
    done = api_server.try_kubectl("create", f"--validate={strict}", "-f", "-", given=given)
    if name == "odd.yaml":
        # An unknown field and a mount without its path: only the second is a reason to refuse a pod.
        for field in ("spec.template.spec.nodeselector", "resources.request", "frobnicate", "mountpath"):
            assert 'unknown field "' in done.stderr
            assert field in done.stderr
        assert "mountPath: Required value" in done.stderr
        return
    assert done.stderr == ""
    labels = "training.kubeflow.org/operator-name=mpi-operator,training.kubeflow.org/job-role=worker"
    pods = api_server.kubectl("get", "pods", "-n", namespace, "-l", labels, "-o", "name").split()
    assert pods == [f"pod/{worker['metadata']['name']}" for worker in plan.workers]
