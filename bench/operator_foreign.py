"""Jobs whose images hold no mpiboot, in turn with mpi-operator: submit to first rank, and submit to Succeeded.

Three kinds: mpi-operator's users' image, an image by the computing centre's guide, and mpi-operator's own examples with
each runtime, whose launcher has arguments alone and whose workers have a readiness probe of 2 s and more.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from bench import _operators
from bench._cluster import client, namespace
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._mpijobs import REPAIR, Kind, Outcome, run
from bench._peers_image import SSHD, example_image, guides_image, peers_image
from bench.harness import Row, in_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMES = 10
OURS = "mpiboot/openmpi:latest"
PEER = "mpi-operator repaired"
HOME = "/home/user/.ssh"


def kinds() -> Mapping[str, tuple[Kind, Kind]]:
    """By name: the job as we run it and as mpi-operator does, whose Open MPI needs more variables."""
    peers, guide = peers_image(), guides_image()
    found = {
        "our image; the peers' image there": (Kind(OURS), Kind(peers, REPAIR, SSHD)),
        "the peers' image": (Kind(peers, {}, SSHD), Kind(peers, REPAIR, SSHD)),
        "the guide's image": (Kind(guide, keys=HOME), Kind(guide, REPAIR, keys=HOME)),
    }
    for runtime, name in (("openmpi", "OpenMPI"), ("mpich", "MPICH"), ("intel", "Intel")):
        image, spec = example_image(runtime), {"mpiImplementation": name}
        mended = REPAIR if runtime == "openmpi" else {}
        found[f"the example of {name}"] = (
            Kind(image, {}, SSHD, spec=spec, example=True), Kind(image, mended, SSHD, spec=spec, example=True))
    return found


def measure() -> list[Row]:
    every = kinds()
    api = client(*dict.fromkeys(kind.image for pair in every.values() for kind in pair))
    names = (f"job-{number}" for number in itertools.count())
    rows: list[Row] = []
    with (namespace(api, "ours") as here, namespace(api, "peer") as there,
          _operators.ours(here), _operators.peer(there)):
        for what, (ours, theirs) in every.items():
            outcomes: dict[str, list[Outcome]] = {here: [], there: []}

            def start(space: str, kind: Kind, outcomes: dict[str, list[Outcome]] = outcomes) -> float:
                outcomes[space].append(run(api, space, kind, 2, next(names)))
                return outcomes[space][-1].first_rank - outcomes[space][-1].submitted

            for space, kind in ((here, ours), (there, theirs)):
                start(space, kind)  # the first start fills the caches
                outcomes[space].clear()
            first, peer = in_turn(TIMES, partial(start, here, ours), partial(start, there, theirs))
            ends, peers_ends = (
                [each.succeeded - each.submitted for each in outcomes[space]] for space in (here, there))
            own = ours.image == OURS
            rows += [
                Row(f"submit to first rank, 2 workers, {what}", "s", first, limit=0.65 if own else 0.8, beside=peer,
                    beside_what=PEER),
                Row(f"submit to Succeeded, 2 workers, {what}", "s", ends, limit=0.7 if own else 0.9,
                    beside=peers_ends, beside_what=PEER),
                Row(f"launcher restarts, {what}", "", [float(each.launcher_starts - 1) for each in outcomes[here]],
                    limit=0, note=f"mpi-operator: {sum(each.launcher_starts - 1 for each in outcomes[there])} in all"),
            ]
    return rows
