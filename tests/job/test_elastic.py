"""Which jobs are elastic, and what their commands say about sizes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from mpiboot.job import elastic
from mpiboot.job.elastic import Elastic
from mpiboot.job.elastic_faults import too_few
from mpiboot.job.model import Job, Replica

SCRIPT = ("--host-discovery-script", "/etc/mpi/discover_hosts.sh")
CHART = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "3", *SCRIPT, "python", "/examples/mnist.py"]


def job_with(container: dict[str, Any], main: str = "") -> Job:
    sidecar = {"name": "logs", "command": ["tail"]}
    template = {"spec": {"containers": [container, sidecar]}}
    return Job(name="job", namespace="default", launcher=Replica(1, template, "Never"), main_container=main)


def test_the_charts_command_is_elastic_and_says_its_sizes() -> None:
    assert elastic.of_words(CHART) == Elastic(2, 1, 3)


@pytest.mark.parametrize("command", [
    ["horovodrun", "--num-proc", "2", "--min-num-proc=1", "--max-num-proc=3", f"{SCRIPT[0]}={SCRIPT[1]}", "python"],
    ["/bin/sh", "-c", f"horovodrun -np 2 --min-np 1 \\\n --max-np 3 {' '.join(SCRIPT)} python train.py"],
    ["bash", "-c", f"cd /x; horovodrun -np '2' --min-np \"1\" --max-np 3; {SCRIPT[0]} x"],
])  # fmt: skip
def test_other_names_and_shells_are_understood(command: list[str]) -> None:
    assert elastic.of_words(command) == Elastic(2, 1, 3)


@pytest.mark.parametrize("command", [
    ["mpirun", "-np", "2", "python", "train.py"],
    ["horovodrun", "-np", "2", "--min-np", "1", "python"],  # without a script it learns of no other hosts
    ["mpiboot", "launch", "--min-workers", "0", "--", "mpirun"],
    [],
])  # fmt: skip
def test_others_are_not_elastic(command: list[str]) -> None:
    assert elastic.of_words(command) is None


def test_a_number_of_workers_that_suffice_makes_a_job_elastic() -> None:
    assert elastic.of_words(["mpirun", "-n", "4", "x"], 2) == Elastic(None, None, None, 2)
    assert elastic.of_words(["mpiboot", "launch", "--min-workers=3", "--", "mpirun"], 2) == Elastic(min_workers=3)


def test_what_is_no_number_is_not_given() -> None:
    assert elastic.of_words(["horovodrun", "-np", "$N", "--min-np", *SCRIPT]) == Elastic()


@pytest.mark.parametrize(("said", "slots", "fewest", "most"), [
    (Elastic(2, 1, 3), 1, 1, 3),
    (Elastic(8, 5, 9), 4, 2, 3),
    (Elastic(8), 4, 2, None),  # without --min-np all that it begins with
    (Elastic(8, 5, 9, min_workers=3), 4, 3, 3),
    (Elastic(), 0, 1, None),
])  # fmt: skip
def test_ranks_become_workers(said: Elastic, slots: int, fewest: int, most: int | None) -> None:
    assert (said.fewest_workers(slots), said.most_workers(slots)) == (fewest, most)


@pytest.mark.parametrize(("said", "workers", "slots", "why"), [
    (Elastic(3, 1), 2, 1, "-np 3 needs 3 workers, but the job has 2 workers with 1 slot each"),
    (Elastic(3, 1), 2, 2, ""),
    (Elastic(3, 3), 2, 1, "--min-np 3 needs 3 workers, but the job has 2 workers with 1 slot each"),
    (Elastic(5), 1, 2, "-np 5 needs 3 workers, but the job has 1 worker with 2 slots each"),
    (Elastic(2, 1, min_workers=3), 2, 1, "--min-workers 3 needs 3 workers, but the job has 2 workers with 1 slot each"),
    (Elastic(2, 1, 4), 2, 1, ""),
])  # fmt: skip
def test_a_job_begins_with_all_its_first_ranks(said: Elastic, workers: int, slots: int, why: str) -> None:
    assert too_few(said, workers, slots) == why


def test_a_jobs_own_words_count() -> None:
    assert elastic.of_job(job_with({"command": CHART[:1], "args": CHART[1:]})) == Elastic(2, 1, 3)
    assert elastic.of_job(job_with({"args": ["mpirun", "-n", 2]})) is None
    assert elastic.of_job(job_with({"name": "a", "command": CHART}, main="logs")) is None


@pytest.mark.parametrize(("value", "fewest"), [("2", 2), (2, 2), ("0", 0), ("two", 0), ("", 0)])
def test_a_launchers_variable_counts(value: object, fewest: int) -> None:
    container = {"command": ["mpirun"], "env": [{"name": "MPIBOOT_MIN_WORKERS", "value": value}]}
    found = elastic.of_job(job_with(container))
    assert (found.min_workers if found else 0) == fewest


def test_asking_costs_no_imports_at_pid_1() -> None:
    loads = "import sys, mpiboot.job.elastic; print([m for m in ('dataclasses', 'yaml') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
