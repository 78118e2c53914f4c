"""A report as text for people and as JSON for programs. Pure."""

from __future__ import annotations

import json
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mpiboot.images.check import causes
from mpiboot.images.check.outcome import Answer, Finding, Report, Status, Trial
from mpiboot.job.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mpiboot.images.contract import Point, Profile

WIDTH = 110


def text(report: Report, required: Profile) -> str:
    """The text: for a bad image one line with the reason; then all findings, the profiles and the verdict."""
    lines = [*opening(report, required), _headline(report), ""]
    for answer, group in groupby(report.findings, key=lambda found: found.answer):
        lines += _findings(answer, list(group))
    for trial in report.trials:
        lines += ["", *_trial(report, trial)]
    lines += ["", verdict(report, required)]
    return printable("\n".join(lines))


def as_json(report: Report, required: Profile) -> str:
    """The report as a JSON object. Later versions keep its keys and may add new ones."""
    image = report.image
    content = {
        "image": image.name,
        "id": image.id,
        "bytes": image.size,
        "architecture": image.architecture,
        "user": image.user,
        "required": required.word,
        "fulfilled": report.fulfils(required),
        "unfinished": report.unfinished,
        "points": [_point(found) for found in report.findings],
        "profiles": [
            {
                "name": trial.profile.word,
                "user": trial.user,
                "works": trial.works,
                "fulfilled": report.fulfils(trial.profile),
                "steps": [_point(step) for step in trial.steps],
                "change": [point.id for point in to_change(report, trial)],
            }
            for trial in report.trials
        ],
        "seconds": round(report.seconds, 1),
    }
    return json.dumps(content, indent=2)


def opening(report: Report, required: Profile) -> Iterator[str]:
    """For an image that does not fulfil `required`: one line that says what is wrong and what to do."""
    if report.fulfils(required):
        return
    name = report.image.name
    if report.unfinished:
        late = (found.point.id for found in report.findings if found.answer.observed == report.unfinished)
        last = next(late, "image")
        hang = f"{last} had {report.unfinished}"
        yield f"the check of {name} is not complete: {hang}; see what hangs, or give a longer limit"
        return
    steps = [step for trial in report.trials if trial.profile <= required for step in trial.steps]
    failed = [step for step in steps if step.is_fault and step.point.needed_by]
    first = next(iter([*report.faults(required), *failed]))
    yield f"{name} cannot run MPI jobs as '{required.word}': {first.answer.observed}; {first.point.fix}"


def verdict(report: Report, required: Profile) -> str:
    """One line: whether the image fulfils `required`, as far as the check shows, and if not, why."""
    name, profile = report.image.name, required.word
    after = f"({report.seconds:.1f} s)"
    if report.fulfils(required):
        unchecked = _unchecked(report, required)
        but = f"; not checked: {', '.join(unchecked)}" if unchecked else ""
        return f"{name} fulfils the contract for '{profile}' {after}{but}"
    broken = [trial.profile.word for trial in report.trials if trial.profile <= required and not trial.works]
    causing = [point.id for trial in report.trials if trial.profile <= required for point in to_change(report, trial)]
    wrong = dict.fromkeys([*(found.point.id for found in report.faults(required)), *causing])
    parts = [f"does not run as {' or '.join(broken)}"] if broken else []
    parts += [f"change: {', '.join(wrong)}"] if wrong else []
    parts += [f"the check is not complete: {report.unfinished}"] if report.unfinished else []
    return f"{name} does not fulfil the contract for '{profile}': {'; '.join(parts)} {after}"


def to_change(report: Report, trial: Trial) -> tuple[Point, ...]:
    """The points that keep this profile from working: the causes of its failure, then the next faults."""
    if trial.works:
        return ()
    faults = [found.point for found in report.findings if found.is_fault]
    return tuple(dict.fromkeys([*trial.causes, *causes.next_faults(trial.profile, faults)]))


def _unchecked(report: Report, required: Profile) -> list[str]:
    """Points that a job needs, and that the check could not test."""
    steps = [step for trial in report.trials if trial.profile <= required for step in trial.steps]
    found = [f for f in (*report.findings, *steps) if f.answer.status is Status.NOT_CHECKED]
    return list(dict.fromkeys(f.point.id for f in found if f.point.needed_by and f.point.needed_by <= required))


def _headline(report: Report) -> str:
    image = report.image
    megabytes = image.size / 1e6
    return f"{image.name}: {megabytes:.0f} MB, {image.architecture}, user {image.user or 'root'}, {image.id[7:19]}"


def _findings(answer: Answer, group: list[Finding]) -> Iterator[str]:
    """The lines of adjacent points with the same answer; unchecked points with one reason share a line."""
    if answer.status is Status.NOT_CHECKED and len(group) > 1:
        yield f"?       {f'{len(group)} more points':<21} {answer.observed}"
        return
    for found in group:
        yield from _finding(found)


def _finding(found: Finding) -> Iterator[str]:
    yield f"{_mark(found)}  {found.point.id:<21} {found.answer.observed}"
    if found.is_fault:
        yield from _indented("needed: ", found.point.must + _needed_by(found.point))
        yield from _indented("why: ", found.point.reason)
        yield from _indented("fix: ", found.point.fix)


def _trial(report: Report, trial: Trial) -> Iterator[str]:
    yield f"{'works ' if trial.works else 'FAILS '} as {trial.profile.word} (user {trial.user})"
    for step in trial.steps:
        yield f"          {_mark(step)}  {step.point.id:<15} {step.answer.observed}"
    for point in to_change(report, trial):
        yield from _indented(f"fix {point.id}: ", point.fix)


def _mark(found: Finding) -> str:
    if found.is_fault:
        return "FAULT " if found.point.needed_by else "advice"
    return {Status.OK: "ok    ", Status.NOT_CHECKED: "?     ", Status.NOT_APPLICABLE: "-     "}[found.answer.status]


def _needed_by(point: Point) -> str:
    return f" (needed by {point.needed_by.word})" if point.needed_by else " (advice)"


def _indented(word: str, content: str) -> Iterable[str]:
    first = " " * 10 + word
    return textwrap.wrap(
        content, WIDTH, initial_indent=first, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False
    )


def _point(found: Finding) -> dict[str, Any]:
    point = found.point
    explained = {"must": point.must, "reason": point.reason, "fix": point.fix} if found.is_fault else {}
    return {
        "id": point.id,
        "status": found.answer.status.value,
        "needed_by": point.needed_by.word if point.needed_by else None,
        "saw": found.answer.observed,
        **explained,
    }
