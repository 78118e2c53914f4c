"""One of two workers starts 40 s late: the time from it to the first rank, and the restarts of the launcher."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

from bench import _operators
from bench._cluster import client, namespace
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._mpijobs import REPAIR, JobFaultError, Kind, Outcome, run
from bench._peers_image import SSHD, peers_image
from bench.harness import Row

OURS = "mpiboot/openmpi:latest"
TIMES = 3
GOALS = {"in place, our image": 1.0, "behind a gate, foreign image": 3.0}


def measure() -> list[Row]:
    theirs = peers_image()
    api = client(OURS, theirs)
    late = "worker-1"
    with (namespace(api, "place") as place, namespace(api, "gate") as gate, namespace(api, "peer") as there,
          _operators.ours(place), _operators.ours(gate), _operators.peer(there), ThreadPoolExecutor(3) as side_by_side):
        # All three wait 40 s for their late worker, so they run at the same time.
        ways = {
            "in place, our image": (place, Kind(OURS, late=late)),
            "behind a gate, foreign image": (gate, Kind(theirs, {}, SSHD, late=late)),
            "mpi-operator repaired": (there, Kind(theirs, REPAIR, SSHD, late=late)),
        }
        faults: list[str] = []
        outcomes: dict[str, list[Outcome]] = {way: [] for way in ways}
        names = (f"job-{number}" for number in itertools.count())
        for _ in range(TIMES):
            begun = {way: side_by_side.submit(run, api, space, kind, 2, next(names))
                     for way, (space, kind) in ways.items()}
            for way, future in begun.items():
                try:
                    outcomes[way].append(future.result())
                except JobFaultError as fault:
                    if way in GOALS:
                        raise
                    faults.append(f"{way}: {fault}")  # a fault of theirs becomes a note, and the other numbers stay
    rows = []
    for way, found in outcomes.items():
        if found:
            rows += [Row(f"last worker ready to first rank, {way}", "s",
                         [each.first_rank - each.listening for each in found], limit=GOALS.get(way)),
                     Row(f"launcher restarts, {way}", "", [float(each.launcher_starts - 1) for each in found],
                         limit=0 if way in GOALS else None, note="; ".join(faults) if way not in GOALS else "")]
    return rows
