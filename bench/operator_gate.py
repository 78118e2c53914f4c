"""Three ways to hold back a foreign launcher until its workers serve: gate, init container, late creation."""

from __future__ import annotations

import itertools

from bench import _operators
from bench._cluster import client, namespace
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._mpijobs import REPAIR, Kind, run
from bench._peers_image import SSHD, peers_image
from bench.harness import Row, in_turn

TIMES = 12


def measure() -> list[Row]:
    image = peers_image()
    api = client(image)
    ways = {
        "a scheduling gate": Kind(image, {}, SSHD),
        # The way without an operator's help: the pod starts at once, and an init container waits for the workers.
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
            start(kind)  # the first start fills the caches
        held = in_turn(TIMES, *(lambda kind=kind: start(kind) for kind in ways.values()))
    what = "submit to first rank, 2 workers, held back by"
    gate, *others = held
    return [Row(f"{what} a scheduling gate", "s", gate, beside=samples, beside_what=way)
            for way, samples in zip(list(ways)[1:], others, strict=True)]
