"""`make demo` after the set-up: one MPI job on two workers, with its timeline as a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mpiboot.containers.client import connect
from mpiboot.containers.endpoint import NoEngineError

ROOT = Path(__file__).resolve().parent.parent
MPIBOOT = Path(sys.executable).parent / "mpiboot"
TIMELINE = ROOT / "build" / "demo.svg"
IMAGE = "mpiboot/openmpi"
PROGRAM = ["python", "-m", "mpiboot.demo"]

NEXT = """
That was a real MPI job: sshd in two workers, a launcher that waited for them, mpirun over SSH.
Its timeline: {timeline}

What to try next ({mpiboot} is the command):
  mpiboot run {engine}-n 8 --workers 4 {image} -- python -m mpiboot.demo 5000000
  mpiboot run --help                      the options of a job
  {last}
"""


def main() -> int:
    """The exit code of the job."""
    engine = "docker" if _engine_answers() else "local"
    if engine == "docker":
        _mpiboot("images", "build", "openmpi")
    TIMELINE.parent.mkdir(exist_ok=True)
    shown = TIMELINE.relative_to(Path.cwd()) if TIMELINE.is_relative_to(Path.cwd()) else TIMELINE
    _mpiboot("run", "--engine", engine, "-n", "4", "--workers", "2", "--timeline", str(shown), IMAGE, "--", *PROGRAM)
    last = {
        "docker": "mpiboot images check IMAGE              check whether your image can run MPI jobs",
        "local": "install Docker, then make demo again    the same job in containers",
    }[engine]
    print(NEXT.format(timeline=shown, mpiboot=os.path.relpath(MPIBOOT), image=IMAGE, last=last,
                      engine="" if engine == "docker" else "--engine local "))
    return 0


def _engine_answers() -> bool:
    try:
        connect().close()
    except NoEngineError as error:
        print(f"demo: {error}\ndemo: using processes of this machine instead of containers\n", file=sys.stderr)
        return False
    return True


def _mpiboot(*arguments: str) -> None:
    """Print the command as a user types it, and run it. If it fails, the demo ends with its exit code."""
    print(f"$ mpiboot {' '.join(arguments)}", flush=True)
    done = subprocess.run([str(MPIBOOT), *arguments])
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    sys.exit(main())
