"""What a check found: plain values, and the two questions they answer."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.images.contract import POINTS, Point, Profile

if TYPE_CHECKING:
    from mpiboot.images.check.image import Image


class Status(enum.Enum):
    """How a point of the contract came out."""

    OK = "ok"
    FAULT = "fault"
    NOT_CHECKED = "not checked"
    NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class Answer:
    """What a single check says: how it came out, and what it saw."""

    status: Status
    saw: str


def ok(saw: str) -> Answer:
    return Answer(Status.OK, saw)


def fault(saw: str) -> Answer:
    return Answer(Status.FAULT, saw)


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

    `causes` are the points that explain the failure, as far as the programs' own words tell.
    """

    profile: Profile
    user: str
    steps: tuple[Finding, ...]
    causes: tuple[Point, ...] = ()

    @property
    def works(self) -> bool:
        """Whether every step that a job needs went well. A step that could not be checked is no failure."""
        return not any(step.is_fault and step.point.needed_by for step in self.steps)


@dataclass(frozen=True)
class Report:
    """All that is known about an image after its check. `unfinished`: why not all static points were looked at."""

    image: Image
    findings: tuple[Finding, ...]
    trials: tuple[Trial, ...]
    seconds: float
    unfinished: str | None = None

    def faults(self, required: Profile) -> tuple[Finding, ...]:
        """The static points that stand in the way of `required`."""
        return tuple(found for found in self.findings if found.is_fault and _needs(required, found.point))

    def fulfils(self, required: Profile) -> bool:
        """Whether the image is all that `required` and the easier profiles need, and was seen to run as each."""
        runs = all(trial.works for trial in self.trials if trial.profile <= required)
        return runs and not self.faults(required) and not self.unfinished


def finding(point_id: str, answer: Answer) -> Finding:
    return Finding(POINTS[point_id], answer)


def _needs(profile: Profile, point: Point) -> bool:
    return point.needed_by is not None and point.needed_by <= profile
