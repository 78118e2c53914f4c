"""What holds for every job: nothing is changed in place, nothing is lost, nothing grows faster than the job."""

from __future__ import annotations

import copy
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.check.convert import convert
from mpiboot.job.plan.plan import Plan, plan
from mpiboot.job.problems import ManifestError
from mpiboot.job.read.manifest import Manifest, load
from mpiboot.job.read.read import read
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.plan.ssh_material import SshMaterial

GOOD = ("cert-guide.yaml", "odd.yaml", "pi.yaml", "root-working-launcher.yaml")

OLD = ("v1.yaml", "v1alpha1.yaml", "v1alpha2.yaml")


def objects(found: Plan) -> list[Any]:
    return [found.secret, found.config_map, found.service, *found.workers, found.launcher]


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_changed_and_the_plan_is_always_the_same(
    manifest: Callable[[str], Manifest], material: SshMaterial, name: str
) -> None:
    given = manifest(name)
    before = copy.deepcopy(given.data)
    job = read(given).job
    first = json.dumps(objects(plan(job, material)))
    assert given.data == before
    assert json.dumps(objects(plan(job, material))) == first
    assert json.dumps(objects(plan(read(manifest(name)).job, material))) == first


def lost(given: Any, found: Any, path: str = "") -> list[str]:  # noqa: ANN401
    """The places of a template that are not in a pod any more, or hold something else."""
    if isinstance(given, dict) and isinstance(found, dict):
        return [place for key in given for place in lost(given[key], found.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(found, list):
        # Ours may join them.
        return [f"{path}[{index}]" for index, item in enumerate(given) if all(lost(item, other) for other in found)]
    return [] if given is None or str(given).lower() == str(found).lower() else [path]


@pytest.mark.parametrize("name", GOOD)
def test_nothing_of_the_users_templates_is_lost(planned: Callable[..., Plan], name: str) -> None:
    found = planned(name)
    # Replaced with a warning each: the restart policy, and a variable of the container.
    replaced = {"odd.yaml": [".spec.restartPolicy", ".spec.containers[0]"]}.get(name, [])
    assert found.job.worker is not None
    assert lost(found.job.launcher.template, found.launcher["spec"]["template"]) == replaced
    for worker in found.workers:
        assert lost(found.job.worker.template, worker) == []


def test_unknown_fields_reach_the_pods(planned: Callable[..., Plan]) -> None:
    found = planned("odd.yaml")
    launcher = found.launcher["spec"]["template"]["spec"]
    assert launcher["nodeselector"] == {"disk": "ssd"}
    assert launcher["containers"][0]["resources"] == {"request": {"cpu": 1, "memory": "6Gi"}}
    assert found.workers[0]["spec"]["frobnicate"] == {"keep": ["me"]}


ODD_SCALARS = (None, 0, -1, 7, 1.5, True, "", "x")
ODD_VALUES: tuple[Any, ...] = (*ODD_SCALARS, [], [None], ["x"], {}, {"x": 1}, [{}], [{"name": []}], [[]], {"name": 3})


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Every path in a piece of data."""
    items: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    return [path, *(place for key, value in items for place in places(value, (*path, key)))] if path or items else []


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:  # noqa: ANN401
    """A copy of the data with another value at a place."""
    result = copy.deepcopy(data)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = copy.deepcopy(value)
    return result


def outcome(given: Manifest, material: SshMaterial) -> str:
    """What becomes of a manifest. Anything but a good plan or a message fails the test."""
    try:
        job = read(given).job
    except ManifestError as error:
        return "words" if str(error).startswith(given.source) else f"a message without the file's name: {error}"
    json.dumps(objects(plan(job, material, Settings(checkin_urls=("http://c",)))), allow_nan=False)
    return "plan"


@pytest.mark.parametrize("name", GOOD)
def test_whatever_stands_wherever_ends_in_a_plan_or_in_words(
    manifest: Callable[[str], Manifest], material: SshMaterial, name: str
) -> None:
    given = manifest(name).data
    outcomes = {"plan": 0, "words": 0}
    for path in places(given):
        for value in ODD_VALUES if path else ():
            data = replaced(given, path, value)
            outcomes[outcome(Manifest(data, name), material)] += 1
    assert min(outcomes.values()) > 50


@pytest.mark.parametrize("name", OLD)
def test_old_manifests_too_and_what_can_run_can_be_converted(
    manifest: Callable[[str], Manifest], material: SshMaterial, name: str
) -> None:
    given = manifest(name).data
    outcomes = {"plan": 0, "words": 0}
    for path in places(given):
        for value in ODD_VALUES if path else ():
            changed = Manifest(replaced(given, path, value), name)
            result = outcome(changed, material)
            outcomes[result] += 1
            if result == "plan":
                assert outcome(load(convert(changed, Settings()), "converted.yaml"), material) == "plan"
    assert min(outcomes.values()) > 50


def test_texts_cut_anywhere_end_in_words(material: SshMaterial) -> None:
    text = (Path(__file__).parent / "manifests" / "odd.yaml").read_text()
    for end in range(0, len(text), 7):
        with suppress(ManifestError):
            assert outcome(load(text[:end], "cut.yaml"), material) in ("plan", "words")


def calls(action: Callable[[], object]) -> int:
    """How many functions run, ours and built-in ones: work that no clock disturbs."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_a_thousand_workers_cost_ten_times_a_hundred(
    small: Callable[..., dict[str, Any]], material: SshMaterial
) -> None:
    few, many = (
        calls(lambda data=data: plan(read(Manifest(data)).job, material))  # type: ignore[misc]
        for data in (small(workers=100), small(workers=1000))
    )
    assert many < 11 * few
    workers = plan(read(Manifest(small(workers=1000))).job, material).workers
    assert len({worker["metadata"]["name"] for worker in workers}) == 1000
    # What they share is there once, so that a thousand pods do not take a thousand templates' memory.
    assert len({id(worker["spec"]["volumes"]) for worker in workers}) == 1
