"""8 and 32 workers: from the last sshd to the first rank, compared with mpi-operator and with a plain mpirun."""

from __future__ import annotations

import itertools

from bench import _operators
from bench._cluster import client, namespace
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._mpijobs import RANK, REPAIR, Kind, Outcome, run
from bench._peers_image import SSHD, peers_image
from bench.harness import Row

OURS = "mpiboot/openmpi:latest"
GOALS = {8: 0.5, 32: 1.0}  # workers: seconds
JOBS = {8: 5, 32: 3}
ROUNDS = 3  # of each way, in turn, in each job of the largest size
LARGEST = max(GOALS)
MPIRUN = f"mpirun -n {LARGEST}"
PLAIN = ("env -i HOME=$HOME PATH=/usr/local/bin:/usr/bin:/bin mpirun --hostfile /etc/mpi/hostfile "
         f"--prtemca prte_keep_fqdn_hostnames 1 --prtemca odls_base_max_threads 0 --bind-to none -n {LARGEST}")
# The command of `mpiboot launch` runs mpirun again and again: with all of the launcher's settings, and without them.
SCRIPT = f"""
mark() {{ echo mark $1 $(date +%s.%N); }}
mark first; {MPIRUN} sh -c '{RANK}'
for round in $(seq {ROUNDS}); do
mark plain; {PLAIN} sh -c '{RANK}'
mark prepared; {MPIRUN} sh -c '{RANK}'
done"""


def measure() -> list[Row]:
    theirs = peers_image()
    api = client(OURS, theirs)
    repaired = Kind(theirs, REPAIR, SSHD)
    kinds = {workers: Kind(OURS, command=("sh", "-c", SCRIPT) if workers == LARGEST else ()) for workers in GOALS}
    names = (f"job-{number}" for number in itertools.count())
    rows: list[Row] = []
    with (namespace(api, "ours") as here, namespace(api, "peer") as there, _operators.ours(here),
          _operators.peer(there)):
        for workers, goal in GOALS.items():
            ours, others = [], []
            for _ in range(JOBS[workers]):
                ours.append(run(api, here, kinds[workers], workers, next(names)))
                others.append(run(api, there, repaired, workers, next(names)))
            seconds = ", ".join(f"{_after(each):.2f}" for each in others)
            rows.append(Row(f"{workers} workers: last sshd accepting to first rank", "s",
                            [_after(each) for each in ours], limit=goal,
                            note=f"mpi-operator repaired: {seconds} s"))
    return [*rows, *_parts(ours)]


def _after(outcome: Outcome) -> float:
    return outcome.first_rank - outcome.listening


def _parts(outcomes: list[Outcome]) -> list[Row]:
    """The part of Open MPI in that time: a plain mpirun in the same pods, long after all of them are ready."""
    what = f"{LARGEST} workers:"
    by_way = [_by_way(outcome) for outcome in outcomes]
    first, plain, prepared = ([seconds for ways in by_way for seconds in ways[way]]
                              for way in ("first", "plain", "prepared"))
    return [
        Row(f"{what} of it, until mpirun starts", "s", [_starts(each) - each.listening for each in outcomes]),
        Row(f"{what} of it, mpirun to first rank", "s", first, beside=plain, beside_what="plain mpirun, later"),
        Row(f"{what} mpirun to first rank, later", "s", prepared, limit=1.1, beside=plain, beside_what="plain mpirun")]


def _starts(outcome: Outcome) -> float:
    return next(float(line.split()[2]) for line in outcome.printed if line.startswith("mark first"))


def _by_way(outcome: Outcome) -> dict[str, list[float]]:
    """For each way, the seconds from each start of mpirun to its first rank."""
    way, begun, ranks = "", 0.0, list[float]()
    found: dict[str, list[float]] = {}
    for words in (*(line.split() for line in outcome.printed), ["mark", "", "0"]):
        if words[:1] == ["rank"]:
            ranks.append(float(words[1]))
        elif words[:1] == ["mark"]:
            if ranks:
                found.setdefault(way, []).append(min(ranks) - begun)
            way, begun, ranks = words[1], float(words[2]), []
    return found
