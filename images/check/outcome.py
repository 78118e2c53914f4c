"""The results of a check, as plain values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.images.contract import POINTS, Point, Profile

if TYPE_CHECKING:
    from mpiboot.images.check.image import Image


LONGEST = 1000  # characters that a report quotes from an image


class Status(enum.Enum):
    """The result of a point of the contract."""

    OK = "ok"
    FAULT = "fault"
    NOT_CHECKED = "not checked"
    NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class Answer:
    """The result of a single check, and what the check observed."""

    status: Status
    observed: str


def ok(observed: str) -> Answer:
    return Answer(Status.OK, observed)


def fault(observed: str) -> Answer:
    return Answer(Status.FAULT, observed)


def not_checked(why: str) -> Answer:
    return Answer(Status.NOT_CHECKED, why)


def not_applicable(why: str) -> Answer:
    return Answer(Status.NOT_APPLICABLE, why)


@dataclass(frozen=True)
class Finding:
    """A point of the contract with its answer."""

    point: Point
    answer: Answer

    @property
    def is_fault(self) -> bool:
        return self.answer.status is Status.FAULT


@dataclass(frozen=True)
class Trial:
    """What happened when the image ran as one profile: the steps in order, up to the first that failed.

    `causes` are the points that explain the failure, as far as the programs' output shows them.
    """

    profile: Profile
    user: str
    steps: tuple[Finding, ...]
    causes: tuple[Point, ...] = ()

    @property
    def works(self) -> bool:
        """Whether every step that a job needs succeeded. A step with the status NOT_CHECKED is no failure."""
        return not any(step.is_fault and step.point.needed_by for step in self.steps)


@dataclass(frozen=True)
class Report:
    """The result of the check of an image. `unfinished` says why the check did not reach all static points."""

    image: Image
    findings: tuple[Finding, ...]
    trials: tuple[Trial, ...]
    seconds: float
    unfinished: str | None = None

    def faults(self, required: Profile) -> tuple[Finding, ...]:
        """The static points that `required` needs and that are faults."""
        return tuple(found for found in self.findings if found.is_fault and _needs(required, found.point))

    def fulfils(self, required: Profile) -> bool:
        """Whether the image meets all points of `required` and the easier profiles, and the trial of each succeeded."""
        runs = all(trial.works for trial in self.trials if trial.profile <= required)
        return runs and not self.faults(required) and not self.unfinished


def finding(point_id: str, answer: Answer) -> Finding:
    observed = answer.observed if len(answer.observed) <= LONGEST else f"{answer.observed[:LONGEST]} ..."
    return Finding(POINTS[point_id], Answer(answer.status, observed))


def _needs(profile: Profile, point: Point) -> bool:
    return point.needed_by is not None and point.needed_by <= profile
