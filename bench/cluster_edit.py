"""`mpiboot run --engine kubernetes`: an edited program (10 MB directory) to its output, beside the same job alone.

The job alone runs a program of the image, and gets no directory.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench import _operators
from bench._cluster import NODE, client, namespace
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._launch import MPIBOOT, PATIENCE
from bench.harness import Row, in_turn

IMAGE = "mpiboot/openmpi:latest"
TIMES = 5
LARGE = 10_000_000  # bytes that do not compress
PROGRAM = "#!/bin/sh\necho edit {}\nsleep 0.3\n"
MORE = 5.0  # seconds, the goal


def measure() -> list[Row]:
    api = client(IMAGE)
    with namespace(api, "edit") as space, _operators.ours(space), tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        (here / "data").write_bytes(os.urandom(LARGE))
        edits = iter(range(1000))

        def edited() -> float:
            number = next(edits)
            (here / "program").write_text(PROGRAM.format(number))
            (here / "program").chmod(0o755)
            return _output_after(here, space, f"edit {number}", "./program")

        def alone() -> float:
            return _output_after(here, space, "alone", "sh", "-c", "echo alone; sleep 0.3", option="--no-workdir")

        ours, job = in_turn(TIMES, edited, alone)
    more = [each - other for each, other in zip(ours, job, strict=True)]
    return [
        Row("an edited program to its output", "s", ours, beside=job, beside_what="the job alone"),
        Row("of that, more than the job alone", "s", more, limit=MORE),
    ]


def _output_after(here: Path, space: str, wanted: str, *program: str, option: str = "-q") -> float:
    """Seconds from the command to the first line of its program."""
    where = ("--engine", "kubernetes", "--namespace", space)
    command = [MPIBOOT, "run", "-q", option, *where, "-n", "2", "--workers", "2"]
    begun = time.monotonic()
    process = subprocess.Popen(
        [*command, IMAGE, "--", *program], cwd=here, env={**os.environ, "KUBECONFIG": str(NODE.kubeconfig)}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout
    seen, took = [], 0.0
    for line in process.stdout:
        seen.append(line)
        took = took or (time.monotonic() - begun if line.strip() == wanted else 0.0)
    if process.wait(PATIENCE) != 0 or not took:
        raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}: {''.join(seen)}")
    return took
