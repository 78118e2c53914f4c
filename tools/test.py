"""What `make test` runs once the environment is there: current images where there is an engine, then pytest."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from mpiboot.containers import NoEngineError, connect

ROOT = Path(__file__).resolve().parent.parent
# The images that most tests need. Others are tested where `make images` has built them.
IMAGES = ("openmpi", "mpich", "intel")


def main() -> int:
    """The exit code of pytest, or of the build of the images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="4", help="how many tests run side by side (default: 4)")
    parser.add_argument("rest", nargs="*", help="arguments for pytest")
    options = parser.parse_args()
    try:
        connect().close()
    except NoEngineError as error:
        print(f"test: {error}; what needs containers is skipped", file=sys.stderr)
    else:
        built = subprocess.run([sys.executable, "-m", "mpiboot", "images", "build", *IMAGES], cwd=ROOT)
        if built.returncode:
            return built.returncode
    # A test keeps to one process with the others of its file, so a module's containers are made once.
    command = [sys.executable, "-m", "pytest", "-n", options.jobs, "--dist", "loadfile", *options.rest]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
