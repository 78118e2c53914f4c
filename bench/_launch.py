"""`mpiboot launch` as a process, started and watched from outside."""

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
# Says when it was executed, to the nanosecond, and costs about a millisecond itself.
CLOCK = ("date", "+%s.%N")
PATIENCE = 120.0


@contextmanager
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mpiboot-bench-") as path:
        yield Path(path)


@contextmanager
def launching(job: Job, *command: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A launcher of this job; ended afterwards if it has not."""
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
    """Returns when the launcher has said that it waits: everything is imported, and it has been quiet for a second."""
    assert process.stderr
    for line in process.stderr:
        if "workers ready after" in line:
            return
    raise RuntimeError(f"the launcher ended with code {process.wait()} before it waited")


def executed_at(process: subprocess.Popen[str]) -> float:
    """When the command, `CLOCK`, was executed: seconds since 1970. The launcher has ended well."""
    out, err = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise RuntimeError(f"the launcher ended with code {process.returncode}: {err.strip()}")
    return float(out.split()[0])
