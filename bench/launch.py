"""The bootstrap of two workers: from the last address to mpirun, and from Python's start to the first wait."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import _checkin, _sshds
from bench._launch import CLOCK, PATIENCE, directory, executed_at, launching, waits
from bench.harness import Row, in_turn

if TYPE_CHECKING:
    from bench._sshds import Job, Worker

REPEATS = 10


def measure() -> list[Row]:
    with directory() as path:
        job = _sshds.job(path / "job", 2)
        with _sshds.running(job, 2) as workers:
            by_file, by_checkin = in_turn(
                REPEATS, lambda: last_address_to_exec(job, workers), lambda: last_check_in_to_exec(job, workers)
            )
            first_wait, bare = in_turn(2 * REPEATS, lambda: start_to_first_wait(path), bare_python)
            rows = [
                Row("last address in the file to command executed", "s", by_file, limit=0.15),
                Row("last check-in to command executed", "s", by_checkin, limit=0.15),
                Row("Python's start to the first wait", "s", first_wait, limit=0.12),
                Row("python -c pass", "s", bare, note="what of the line above is Python's own"),
            ]
            mpirun = openmpi()
            if mpirun:
                real = in_turn(REPEATS, lambda: last_address_to_rank(job, workers, mpirun))[0]
                rows.append(Row("last address in the file to first rank, Open MPI", "s", real))
        return rows


def versions() -> dict[str, str]:
    ssh = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr.strip()
    mpirun = openmpi()
    if not mpirun:
        return {"ssh": ssh}
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    return {"ssh": ssh, "mpirun": version.splitlines()[0]}


def last_address_to_exec(job: Job, workers: list[Worker]) -> float:
    """Both sshds run, one address is known, and the launcher waits. The time starts when the other one is written."""
    job.publish(workers[0].line)
    with launching(job, *CLOCK) as process:
        waits(process)
        begun = time.time()
        job.publish("".join(worker.line for worker in workers))
        return executed_at(process) - begun


def last_address_to_rank(job: Job, workers: list[Worker], mpirun: str) -> float:
    job.publish(workers[0].line)
    path = f"{Path(mpirun).parent}:{os.environ['PATH']}"
    with launching(job, mpirun, "-n", "2", "--map-by", "node", *CLOCK, PATH=path, **AS_ROOT) as process:
        waits(process)
        begun = time.time()
        job.publish("".join(worker.line for worker in workers))
        return executed_at(process) - begun


def last_check_in_to_exec(job: Job, workers: list[Worker]) -> float:
    """As `last_address_to_exec`, but the workers check in at a real server."""
    job.publish("")
    with _checkin.serving([worker.name for worker in workers]) as server:
        server.check_in(0, workers[0].address, _sshds.PORT)
        with launching(job, *CLOCK, **server.environ) as process:
            waits(process)
            begun = time.time()
            server.check_in(1, workers[1].address, _sshds.PORT)
            return executed_at(process) - begun


def start_to_first_wait(path: Path) -> float:
    """Seconds until the launcher's first probe arrives here: then it waits, or is about to."""
    with socket.create_server(("127.0.0.1", 0)) as worker:
        worker.settimeout(PATIENCE)
        job = _sshds.job(path / f"start-{time.monotonic_ns()}", 1)
        job.publish(f"{_sshds.worker(0).name} 127.0.0.1 {worker.getsockname()[1]}\n")
        begun = time.perf_counter()
        with launching(job, "true"):
            worker.accept()[0].close()
            return time.perf_counter() - begun


def bare_python() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begun


def openmpi() -> str | None:
    """An mpirun of Open MPI on this machine."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot/runtimes/openmpi/bin/mpirun"
    return str(cache) if cache.exists() else shutil.which("mpirun")


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
