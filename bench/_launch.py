"""Start `mpiboot launch` as a process and watch its output."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench._sshds import Job

MPIBOOT = str(Path(sys.executable).with_name("mpiboot"))
# Prints when it was executed, to the nanosecond, and takes about a millisecond.
CLOCK = ("date", "+%s.%N")
PATIENCE = 120.0
WAITS = "workers ready after"  # in the launcher's first line about workers; tests/repo/test_bench.py keeps it true


@contextmanager
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mpiboot-bench-") as path:
        yield Path(path)


@contextmanager
def launching(job: Job, *command: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A launcher of this job, ended after the `with` block."""
    given = {
        "MPIBOOT_HOSTFILE": str(job.hostfile),
        "MPIBOOT_ADDRESSES": str(job.addresses),
        "MPIBOOT_SSH_DIR": str(job.ssh_dir),
        **environ,
    }
    process = subprocess.Popen(
        [MPIBOOT, "launch", "--", *command],
        env={**os.environ, **given},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def waits(process: subprocess.Popen[str]) -> None:
    """Return when the launcher logs that it waits: it has imported everything, and has been quiet for a second."""
    assert process.stderr
    for line in process.stderr:
        if WAITS in line:
            return
    raise RuntimeError(f"the launcher ended with code {process.wait()} before it waited")


def executed_at(process: subprocess.Popen[str]) -> float:
    """When the command `CLOCK` was executed, in seconds since 1970. The launcher ended with exit code 0."""
    out, err = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise RuntimeError(f"the launcher ended with code {process.returncode}: {err.strip()}")
    return float(out.split()[0])
