"""`mpiboot run` on Docker, two workers, images present, beside a script of docker commands that does the same."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from bench._engine import engine
from bench._launch import MPIBOOT, PATIENCE
from bench.harness import Row, Unavailable, in_turn
from mpiboot.containers.client import docker_cli

IMAGE = "mpiboot/openmpi:latest"
BY_HAND = Path(__file__).with_name("_by_hand.sh")
REPEATS = 10
# Each rank prints its own start, in seconds since 1970, and sleeps: Open MPI 5 misses the end of ranks that end before
# all of them have started, and then hangs (with mpirun alone as well, in a few of a hundred runs).
PROGRAM = ("sh", "-c", "date +%s.%N; sleep 0.3")


def measure() -> list[Row]:
    _check()
    samples: dict[str, list[tuple[float, float]]] = {"ours": [], "by hand": []}
    number = iter(range(1000))

    def ours() -> float:
        name = f"bench-{os.getpid()}-{next(number)}"
        command = [MPIBOOT, "run", "-q", "--engine", "docker", "--name", name, "-n", "2", "--workers", "2", IMAGE, "--"]
        samples["ours"].append(_first_rank_and_all([*command, *PROGRAM]))
        return samples["ours"][-1][0]

    def by_hand() -> float:
        command = [str(BY_HAND), IMAGE, f"bench-{os.getpid()}-{next(number)}"]
        samples["by hand"].append(_first_rank_and_all([*command, *PROGRAM]))
        return samples["by hand"][-1][0]

    ranks = in_turn(REPEATS, ours, by_hand)
    whole = [[both[1] for both in samples[way]] for way in ("ours", "by hand")]
    return [
        Row("start to first rank", "s", ranks[0], limit=1.2, beside=ranks[1], beside_what="by hand"),
        Row("start to everything removed", "s", whole[0], beside=whole[1], beside_what="by hand"),
    ]


def versions() -> dict[str, str]:
    done = subprocess.run([docker_cli(), "version", "--format", "{{.Server.Version}}"], capture_output=True, text=True)
    return {"docker": done.stdout.strip()}


def _first_rank_and_all(command: list[str]) -> tuple[float, float]:
    """Seconds until the first of two ranks started, and until the command ended."""
    path = f"{Path(docker_cli()).parent}:{os.environ['PATH']}"
    begun = time.time()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": path}
    )
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.terminate()  # so that it removes what it has started
        out, err = process.communicate()
    took = time.time() - begun
    started = [float(stamp) for stamp in re.findall(r"\b[0-9]{10}\.[0-9]{9}\b", out)]
    if process.returncode != 0 or len(started) != 2:
        raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode} after {took:.0f} s: {out}{err}")
    return min(started) - begun, took


def _check() -> None:
    with engine(IMAGE):
        pass
    if not os.environ.get("DOCKER_HOST", "unix://").startswith("unix://"):
        raise Unavailable("a Docker engine of its own: the script's bind mounts do not reach another machine")
