"""Reads BuildKit's plain output line by line, as steps with a name, a state and a log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

State = Literal["running", "done", "cached", "failed"]

_LINE = re.compile(r"#(?P<number>\d+) (?P<text>.*)")
_VERTEX = re.compile(r"\[(?P<stage>[^\]]+)\] (?P<instruction>.*)")
_MOUNTED = re.compile(r"source=/(?P<name>[\w-]+),target=/step")
_DONE = re.compile(r"DONE (?P<seconds>[\d.]+)s")
_LOG = re.compile(r"\d+\.\d+ ?(?P<text>.*)")


@dataclass
class Step:
    """One instruction of the Dockerfile, and how far the engine is with it."""

    name: str
    state: State = "running"
    seconds: float = 0.0
    log: list[str] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        """Whether it is a step of the build, and not one of BuildKit's own."""
        return not self.name.startswith("[internal]") and ": FROM " not in self.name and ": COPY " not in self.name


class Steps:
    """The steps of one build, in the order in which they began. Each line of output goes through `read`."""

    def __init__(self) -> None:
        self.all: dict[str, Step] = {}
        self.other: list[str] = []  # lines that belong to no step: the engine's own errors

    def read(self, line: str) -> Step | None:
        """The step whose state `line` changes; None if it changes none."""
        match = _LINE.match(line)
        if not match:
            if line.strip():
                self.other.append(line)
            return None
        number, text = match["number"], match["text"]
        step = self.all.get(number)
        if step is None:
            self.all[number] = step = Step(name_of(text))
            return step
        return self._advance(step, text)

    def _advance(self, step: Step, text: str) -> Step | None:
        if done := _DONE.match(text):
            step.state, step.seconds = "done", float(done["seconds"])
        elif text == "CACHED":
            step.state = "cached"
        elif text.startswith("ERROR"):
            step.state = "failed"
            step.log.append(text)
        else:
            if log := _LOG.match(text):
                step.log.append(log["text"])
            return None
        return step

    @property
    def failed(self) -> Step | None:
        return next((step for step in self.all.values() if step.state == "failed"), None)

    @property
    def current(self) -> Step | None:
        """The latest step that the engine works on."""
        return next((step for step in reversed(self.all.values()) if step.state == "running" and step.counts), None)


def name_of(vertex: str) -> str:
    """A short name for BuildKit's "[stage 2/3] RUN --mount=... sh ...": the step's folder, or the instruction."""
    if mounted := _MOUNTED.search(vertex):
        return mounted["name"]
    match = _VERTEX.match(vertex)
    if not match or match["stage"] == "internal":
        return vertex
    words = re.sub(r"--mount=\S+\s+", "", match["instruction"])
    return f"{match['stage'].split()[0]}: {words[:60]}"
