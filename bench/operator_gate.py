"""What holds a foreign launcher back until its workers serve: a scheduling gate, an init container, its creation."""

from __future__ import annotations

import itertools

from bench import _operators
from bench._cluster import client, namespace
from bench._cluster import tested as versions  # noqa: F401 (what the runner asks for)
from bench._mpijobs import REPAIR, Kind, run
from bench._peers_image import SSHD, peers_image
from bench.harness import Row, in_turn

TIMES = 12


def measure() -> list[Row]:
    image = peers_image()
    api = client(image)
    ways = {
        "a scheduling gate": Kind(image, {}, SSHD),
        # What launchers do without an operator's help: the pod starts at once, and its first container asks.
        "an init container": Kind(image, REPAIR, SSHD, annotations={"mpiboot.dev/launch": "off"}, asks_first=True),
        "creation when all workers are ready": Kind(
            image, {}, SSHD, spec={"launcherCreationPolicy": "WaitForWorkersReady"}),
    }
    names = (f"job-{number}" for number in itertools.count())
    with namespace(api, "held") as space, _operators.ours(space):

        def start(kind: Kind) -> float:
            outcome = run(api, space, kind, 2, next(names))
            return outcome.first_rank - outcome.submitted

        for kind in ways.values():
            start(kind)  # the first ones find cold caches
        held = in_turn(TIMES, *(lambda kind=kind: start(kind) for kind in ways.values()))
    what = "submit to first rank, 2 workers, held back by"
    gate, *others = held
    return [Row(f"{what} a scheduling gate", "s", gate, beside=samples, beside_what=way)
            for way, samples in zip(list(ways)[1:], others, strict=True)]
