"""How a job says that its launcher restarts a failed command: annotations, variables, options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job import restarts
from mpiboot.job.check.advice import advice
from mpiboot.job.job_annotations import fault
from mpiboot.job.plan.environment import name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.plan import Plan

CONTAINER = "Launcher.template.spec.containers.0"
OURS = {
    f"{CONTAINER}.image": "mpiboot/openmpi:1",
    f"{CONTAINER}.command": ["mpirun", "hostname"],
    "Worker.template.spec.containers.0.image": "mpiboot/openmpi:1",
}
ANNOTATIONS = {
    "mpiboot.dev/restarts": "3",
    "mpiboot.dev/final-codes": "2,64-78",
    "mpiboot.dev/lost-worker-timeout": "90",
}
VARIABLES = {
    "MPIBOOT_RESTARTS": "3",
    "MPIBOOT_FINAL_CODES": "2,64-78",
    "MPIBOOT_LOST_WORKER_TIMEOUT": "90",
}


def found(plan: Plan) -> dict[str, Any]:
    entries = plan.launcher["spec"]["template"]["spec"]["containers"][0]["env"]
    return {name_of(item): item.get("value") for item in entries if name_of(item) in VARIABLES}


def test_annotations_become_variables_of_a_launcher_with_mpiboot(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small({**OURS, "metadata.annotations": ANNOTATIONS})
    assert found(plan) == VARIABLES
    assert restarts.of_job(plan.job) == 3
    assert [warning.text() for warning in advice(plan.arrangement)] == []


def test_a_launcher_without_mpiboot_gets_a_warning_instead(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small({"metadata.annotations": ANNOTATIONS})
    assert found(plan) == {}
    texts = [warning.text() for warning in advice(plan.arrangement)]
    assert texts == [
        f"metadata.annotations[{name}]: has no effect: only a launcher whose image holds mpiboot can do that"
        for name in ANNOTATIONS
    ]


@pytest.mark.parametrize(
    ("command", "variable", "annotation", "wanted"),
    [
        (["mpirun", "--restarts", "9"], None, None, 0),  # an option of something else
        (["mpiboot", "launch", "--restarts", "5", "--", "mpirun"], "2", "3", 5),
        (["mpirun"], "2", "3", 2),
        (["mpirun"], None, "3", 3),
        (["mpirun"], None, "many", 0),
        (["mpirun"], "many", "3", 0),
    ],
)
def test_an_option_beats_a_variable_beats_an_annotation(
    plan_small: Callable[..., Plan], command: list[str], variable: str | None, annotation: str | None, wanted: int
) -> None:
    changes: dict[str, Any] = {**OURS, f"{CONTAINER}.command": command}
    if variable:
        changes[f"{CONTAINER}.env"] = [{"name": "MPIBOOT_RESTARTS", "value": variable}]
    if annotation:
        changes["metadata.annotations"] = {"mpiboot.dev/restarts": annotation}
    assert restarts.of_job(plan_small(changes).job) == wanted


def test_wrong_values_are_named() -> None:
    assert fault("mpiboot.dev/restarts", "-1") == "must be a whole number, is '-1'"
    assert fault("mpiboot.dev/final-codes", "1-256") == "must be exit codes from 1 to 255, like 2,64-78, is '1-256'"
    assert fault("mpiboot.dev/lost-worker-timeout", "1m") == "must be a whole number of seconds, is '1m'"
