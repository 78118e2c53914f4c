"""What `make test` runs once the environment is there: current images, a Kubernetes API server, then pytest."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from debian import say

from mpiboot.containers import NoEngineError, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
# The images that most tests need. Others are tested where `make images` has built them.
IMAGES = ("openmpi", "mpich", "intel", "operator")


def main() -> int:
    """The exit code of pytest, or of the build of the images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="4", help="how many tests run side by side (default: 4)")
    parser.add_argument("rest", nargs="*", help="arguments for pytest")
    options = parser.parse_args()
    # One computes while the other downloads. On a machine that has all of it both take a second.
    with _api_server():
        if code := _images():
            return code
    # A test keeps to one process with the others of its file, so a module's containers are made once.
    # The order of files is that of tests/order.py: xdist's own has the files with few but long tests at the end.
    usual = ["-n", options.jobs, "--dist", "loadfile", "--no-loadscope-reorder"]
    command = [sys.executable, "-m", "pytest", *usual, *options.rest]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).returncode


def _images() -> int:
    """The exit code of their build; 0 where there is no engine, which is said."""
    try:
        connect().close()
    except NoEngineError as error:
        say(f"{error}; what needs containers is not tested")
        return 0
    return subprocess.run([sys.executable, "-m", "mpiboot", "images", "build", *IMAGES], cwd=ROOT).returncode


@contextlib.contextmanager
def _api_server() -> Iterator[None]:
    """Bring etcd and the API server meanwhile. Without them the tests of the operator's logic are left out."""
    build = subprocess.Popen([sys.executable, "tools/cluster", "build", "api"], cwd=ROOT)
    try:
        yield
        if build.wait():
            say("no Kubernetes API server, for the reason above; what needs one is not tested")
    finally:
        if build.poll() is None:
            build.send_signal(signal.SIGINT)  # upon which it ends the compiler, and keeps what is compiled
            build.wait()


if __name__ == "__main__":
    sys.exit(main())
