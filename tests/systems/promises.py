"""The promises to users of the five systems, and the table of those that the tests have shown."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Outcome = Literal["passed", "failed", "skipped"]
State = Literal["pass", "FAIL", "not run", "no test"]


@dataclass(frozen=True)
class Promise:
    """One line of the list: id `E3`, system `E`, and its words."""

    id: str
    system: str
    text: str

    @property
    def mark(self) -> str:
        """The mark of its tests."""
        return f"{self.system}: {self.text}"


@dataclass(frozen=True)
class Promises:
    """All of them, and the title of each system, in their order."""

    titles: Mapping[str, str]
    all: tuple[Promise, ...]

    def named(self, mark: str) -> Promise:
        """The promise of a test's mark. If there is none, the LookupError names the nearest."""
        found = {promise.mark: promise for promise in self.all}
        if mark in found:
            return found[mark]
        near = difflib.get_close_matches(mark, found, 1, cutoff=0.0)
        raise LookupError(f"no promise {mark!r} in tests/systems/promises.toml; the nearest is {near[0]!r}")


def load() -> Promises:
    """Read promises.toml."""
    systems = tomllib.loads(Path(__file__).with_name("promises.toml").read_text(encoding="utf-8"))
    return Promises(
        titles={letter: system["title"] for letter, system in systems.items()},
        all=tuple(Promise(number, letter, text) for letter, system in systems.items()
                  for number, text in system["promises"].items()))


def state(outcomes: Sequence[Outcome]) -> State:
    """The state of a promise by all of its tests: one that failed or did not run counts, even if others passed."""
    if not outcomes:
        return "no test"
    if "failed" in outcomes:
        return "FAIL"
    return "not run" if "skipped" in outcomes else "pass"


def table(promises: Promises, outcomes: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """The lines to print. `outcomes` has, by a promise's id, the outcome of each of its tests by the test's name."""
    lines: list[str] = []
    for letter, title in promises.titles.items():
        rows = [(promise, outcomes.get(promise.id, {})) for promise in promises.all if promise.system == letter]
        states = [state(list(tests.values())) for _, tests in rows]
        lines += ["", f"{letter}  {title}: {states.count('pass')} of {len(rows)} shown"]
        for (promise, tests), said in zip(rows, states, strict=True):
            lines.append(f"   {promise.id:<4} {said:<8} {promise.text}")
            lines += [f"        {'':<8} {outcome}: {test}" for test, outcome in tests.items() if outcome != "passed"]
    return lines


def all_shown(promises: Promises, outcomes: Mapping[str, Mapping[str, Outcome]]) -> bool:
    """Whether every promise has tests, and all of them passed."""
    return all(state(list(outcomes.get(promise.id, {}).values())) == "pass" for promise in promises.all)
