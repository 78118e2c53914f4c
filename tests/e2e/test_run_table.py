"""The table of tests/run_table.py for jobs on a node: what users of mpirun expect of input, output and end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import yaml
from cluster.waiting import wait_for

from tests.run_table import ROWS, Place, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.fixtures import Cluster

    from tests.e2e.jobs import Jobs

PATIENCE = 150.0


@pytest.fixture
def place(cluster: Cluster, jobs: Jobs, loaded: Callable[[str], str], tmp_path: Path) -> Iterator[Place]:
    """A run on the node. After it the cluster has no pod of its job."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for each in config["contexts"]:
        each["context"]["namespace"] = jobs.namespace
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    (tmp_path / "work").mkdir()
    env = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    yield Place("kubernetes", ("--engine", "kubernetes", loaded("openmpi")), env, tmp_path / "work")
    wait_for("the end of the pods", lambda: not jobs.pods(), PATIENCE)


@pytest.mark.parametrize("row", ROWS, ids=names)
def test_as_with_mpirun(place: Place, row: Callable[[Place], None]) -> None:
    row(place)
