"""A user's shell, which runs the commands of a guide unchanged in one namespace of the cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster import versions
from cluster.waiting import wait_for

if TYPE_CHECKING:
    from cluster.fixtures import Cluster

PATIENCE = 150.0  # seconds; only a test that fails waits that long
MADE = "mpijobs,jobs,pods,services,configmaps,secrets,events"


class Shell:
    """`shell("kubectl get pods")` returns the output. A command that fails ends the test, unless `fails` is set."""

    def __init__(self, cluster: Cluster, namespace: str, home: Path) -> None:
        self.cluster, self.namespace, self.home = cluster, namespace, home
        config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
        for each in config["contexts"]:
            each["context"]["namespace"] = namespace
        kubeconfig = home / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(config))
        programs = [*(Path(versions.program(name)).parent for name in ("kubectl", "helm")), Path(sys.executable).parent]
        self.environment = {
            **os.environ, "KUBECONFIG": str(kubeconfig), "NAMESPACE": namespace,
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]])}

    def __call__(self, commands: str, *, given: str | None = None, fails: bool = False, timeout: float = 240) -> str:
        """The output of the commands in bash; with `fails`, the stderr of commands that must fail."""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], input=given, text=True, capture_output=True,
                              timeout=timeout, cwd=self.home, env=self.environment)
        if (done.returncode != 0) != fails:
            pytest.fail(f"{commands}\nended with {done.returncode}:\n{done.stdout}{done.stderr}", pytrace=False)
        return done.stderr if fails else done.stdout

    def json(self, commands: str) -> Any:  # noqa: ANN401 (whatever was asked for)
        """The JSON that the commands print."""
        return json.loads(self(commands))

    def ended(self, job: str, kind: str = "mpijobs", limit: float = PATIENCE) -> str:
        """Wait for the end of a job: Succeeded or Failed."""
        def conditions() -> list[str]:
            status = self.json(f"kubectl get {kind} {job} -o json").get("status") or {}
            found = [each["type"] for each in status.get("conditions") or () if each["status"] == "True"]
            return [each for each in found if each in ("Succeeded", "Failed")]

        self.until(f"the end of {job}", conditions, limit)
        return conditions()[0]

    def until(self, what: str, holds: Any, limit: float = PATIENCE) -> None:  # noqa: ANN401 (any truth)
        """Wait until something holds. Out of time, the error has everything that a user can look at."""
        try:
            wait_for(what, lambda: bool(holds()), limit)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.report()}") from error

    def report(self) -> str:
        """Everything in the namespace that helps to find a fault: jobs, pods, events, logs."""
        return self("kubectl get mpijobs -o yaml; kubectl get pods -o wide; kubectl get events;"
                    "for pod in $(kubectl get pods -o name); do echo \"--- $pod\";"
                    "kubectl logs --all-containers $pod 2>&1 || true; done")

    def leave(self) -> None:
        """Empty the namespace, so that the next test has room."""
        self(f"kubectl delete {MADE} --all --wait=false --grace-period=1")
        self.until("the end of the test's pods", lambda: not self("kubectl get pods -o name"), 60.0)
