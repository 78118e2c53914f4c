"""`make test` after the set-up: build the images and a Kubernetes API server, then run pytest."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from debian import log

from mpiboot.containers.client import connect
from mpiboot.containers.endpoint import NoEngineError
from mpiboot.job import mpi

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
TESTS_FAILED = 1  # pytest's exit code
MOST_AGAIN = 12
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
# The images that most tests need. Tests of others run if `make images` has built those.
IMAGES = (*(runtime.image for runtime in mpi.RUNTIMES), "operator")


def main() -> int:
    """The exit code of pytest, or of the build of the images if that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="4", help="how many tests run side by side (default: 4)")
    parser.add_argument("rest", nargs="*", help="arguments for pytest")
    options = parser.parse_args()
    # The server compiles while the images download. If everything is there, both take a second.
    with _api_server():
        if code := _images():
            return code
    # All tests of a file run in one process, so that they share the module's containers.
    # tests/order.py sorts the files: xdist's own order begins files with few but long tests last.
    usual = ["-n", options.jobs, "--dist", "loadfile", "--no-loadscope-reorder"]
    if os.environ.get("CI") != "true":
        return _pytest(*usual, *options.rest)
    LAST_FAILED.unlink(missing_ok=True)
    code = _pytest(*usual, *options.rest)
    return _alone() if code == TESTS_FAILED else code


def _pytest(*arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).returncode


def _alone() -> int:
    """Run the tests that failed beside others once more, one after the other: with sshds, containers and API servers
    on two processors some of them run out of time. Nothing is hidden: they are named, and the run fails if one fails
    again, or if many have failed.
    """
    # Without the file no test failed: the run itself did, for example because a promise has no test.
    failed = list(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if not 0 < len(failed) <= MOST_AGAIN:
        return TESTS_FAILED
    log(f"{len(failed)} tests failed beside others and run once more, alone:")
    for name in failed:
        print(f"  {name}", flush=True)
    return _pytest("-n0", *failed)


def _images() -> int:
    """The exit code of the build; 0 without a Docker engine, which is reported."""
    try:
        connect().close()
    except NoEngineError as error:
        log(f"{error}; tests that need containers are skipped")
        return 0
    return subprocess.run([sys.executable, "-m", "mpiboot", "images", "build", *IMAGES], cwd=ROOT).returncode


@contextlib.contextmanager
def _api_server() -> Iterator[None]:
    """Build etcd and the API server in the background. Without them the tests of the operator's logic are skipped."""
    build = subprocess.Popen([sys.executable, "tools/cluster", "build", "api"], cwd=ROOT)
    try:
        yield
        if build.wait():
            log("no Kubernetes API server, for the reason above; tests that need one are skipped")
    finally:
        if build.poll() is None:
            build.send_signal(signal.SIGINT)  # it ends the compiler and keeps what is compiled
            build.wait()


if __name__ == "__main__":
    sys.exit(main())
