"""Elastic jobs that end by themselves: after training whose workers came and went, or of a mistake in their program."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.engines.conftest import Running

    Tag = Callable[[str], str]
    Job = Callable[..., Running]
    Scale = Callable[[int], None]

# Each time that ranks come, every one of them imports its framework.
pytestmark = [pytest.mark.timeout(1200)]
LONG = 240.0
# Ends once it has trained with these numbers of ranks, one after the other.
SEEN_ALL = """
import time, torch, horovod.torch as hvd
hvd.init()

@hvd.elastic.run
def train(state):
    while state.left:
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
        if hvd.size() == state.left[0]:
            state.left = state.left[1:]
            if hvd.rank() == 0:
                print("trains with", hvd.size(), "then", *state.left, flush=True)
        time.sleep(0.1)
        state.commit()

train(hvd.elastic.TorchState(left=[2, 3, 1, 2]))
"""


@pytest.fixture
def elastic(start: Callable[..., Running], name: str, tmp_path: Path) -> Job:
    """Starts a program under an elastic horovodrun, with a slot on each worker: `elastic(image, 2, "python", ...)`."""

    def begin(tag: str, workers: int, *program: str) -> Running:
        words = ["horovodrun", "-np", str(workers), "--min-np", "1", "--max-np", "3",
                 "--host-discovery-script", "/etc/mpi/discover_hosts.sh", *program]  # fmt: skip
        main = {"name": "main", "image": tag}
        replicas = {
            "Launcher": {"template": {"spec": {"containers": [{**main, "command": words}]}}},
            "Worker": {"replicas": workers, "template": {"spec": {
                "terminationGracePeriodSeconds": 1, "containers": [main]}}},
        }  # fmt: skip
        job = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": name},
               "spec": {"runPolicy": {"backoffLimit": 0}, "mpiReplicaSpecs": replicas}}  # fmt: skip
        (tmp_path / "job.json").write_text(json.dumps(job))
        return start("run", "--engine", "docker", "-f", str(tmp_path / "job.json"))

    return begin


@pytest.fixture
def scale(mpiboot: Callable[..., subprocess.CompletedProcess[str]], name: str) -> Scale:
    def to(workers: int) -> None:
        done = mpiboot("scale", name, str(workers))
        assert done.returncode == 0, done.stderr

    return to


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_that_ends_before_horovod_begins_ends_the_job(image: Tag, elastic: Job, workers: int) -> None:
    job = elastic(image("horovod-torch"), workers, "python", "misspelled.py")
    assert job.end(LONG) == 1, job.err
    said = "".join([*job.out, *job.err])
    assert said.count("can't open file '/examples/misspelled.py'") == workers, said
    assert "Exit code: 2" in said


@pytest.mark.parametrize(
    ("framework", "file"), [("torch", "pytorch_mnist_elastic.py"), ("tensorflow", "tensorflow2_mnist_elastic.py")]
)
def test_elastic_example_begins_with_one_worker_and_takes_in_another(
    image: Tag, elastic: Job, scale: Scale, name: str, framework: str, file: str
) -> None:
    job = elastic(image(f"horovod-{framework}"), 1, "python", f"/examples/elastic/{file}", "--steps", "300")
    job.wait_for("step 5 ", LONG)
    scale(2)
    assert job.end(LONG) == 0, job.err
    said = "".join(job.out)
    steps = [(int(step), float(loss), int(size)) for step, loss, size in
             re.findall(r"step (\d+) loss ([\d.]+) size (\d+)", said)]  # fmt: skip
    assert [step for step, _, _ in steps] == list(range(1, 301))
    sizes = [size for *_, size in steps]
    assert [size for size, before in zip(sizes, [0, *sizes], strict=False) if size != before] == [1, 2]
    losses = [loss for _, loss, _ in steps]
    assert losses[299] < losses[19] < losses[0]
    joined = re.findall(r"rank (\d) of 2 on (\S+) pid \d+: from step (\d+)", said)
    assert {host for _, host, _ in joined} == {f"{name}-worker-0", f"{name}-worker-1"}
    assert len({step for *_, step in joined}) == 1


def test_training_grows_shrinks_grows_again_and_ends_by_itself(image: Tag, elastic: Job, scale: Scale) -> None:
    job = elastic(image("horovod-torch"), 2, "python", "-c", SEEN_ALL)
    for size, wanted in ((2, 3), (3, 1), (1, 2)):
        job.wait_for(f"trains with {size} then", LONG)
        scale(wanted)
    assert job.end(LONG) == 0, job.err
    seen = re.findall(r"trains with (\d) then", "".join(job.out))
    assert seen == ["2", "3", "1", "2"]
    changes = re.findall(r"mpiboot: (\d -> \d) workers: ", "".join(job.err))
    assert changes[-3:] == ["2 -> 3", "3 -> 1", "1 -> 2"]
