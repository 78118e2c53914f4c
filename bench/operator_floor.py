"""32 workers, from the last sshd to the first rank: what of it is ours, beside a plain mpirun in the same pods."""

from __future__ import annotations

import itertools

from bench import _operators
from bench._cluster import client, namespace
from bench._cluster import tested as versions  # noqa: F401 (what the runner asks for)
from bench._mpijobs import RANK, Kind, Outcome, run
from bench.harness import Row

OURS = "mpiboot/openmpi:latest"
WORKERS = 32
JOBS = 3
ROUNDS = 4  # of each way, in turn, in each job
MPIRUN = f"mpirun -n {WORKERS}"
PLAIN = ("env -i HOME=$HOME PATH=/usr/local/bin:/usr/bin:/bin mpirun --hostfile /etc/mpi/hostfile "
         f"--prtemca prte_keep_fqdn_hostnames 1 --prtemca odls_base_max_threads 0 --bind-to none -n {WORKERS}")
# What `mpiboot launch` started runs mpirun again and again: with all that it prepared, and without any of it.
SCRIPT = f"""
mark() {{ echo mark $1 $(date +%s.%N); }}
mark first; {MPIRUN} sh -c '{RANK}'
for round in $(seq {ROUNDS}); do
mark plain; {PLAIN} sh -c '{RANK}'
mark prepared; {MPIRUN} sh -c '{RANK}'
done"""


def measure() -> list[Row]:
    api = client(OURS)
    kind = Kind(OURS, command=("sh", "-c", SCRIPT))
    names = (f"job-{number}" for number in itertools.count())
    with namespace(api, "floor") as space, _operators.ours(space):
        found = [run(api, space, kind, WORKERS, next(names)) for _ in range(JOBS)]
    what = f"{WORKERS} workers:"
    by_way = [_by_way(outcome) for outcome in found]
    plain = [seconds for ways in by_way for seconds in ways["plain"]]
    return [
        Row(f"{what} last sshd accepting to first rank", "s", [each.first_rank - each.listening for each in found],
            limit=1.0),
        Row(f"{what} of it, until mpirun starts", "s", [_starts(each) - each.listening for each in found]),
        Row(f"{what} of it, mpirun to first rank", "s", [seconds for ways in by_way for seconds in ways["first"]],
            beside=plain, beside_what="plain mpirun, all pods long ready"),
        Row(f"{what} mpirun to first rank, all pods long ready", "s",
            [seconds for ways in by_way for seconds in ways["prepared"]], limit=1.1, beside=plain,
            beside_what="plain mpirun")]


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
