"""Images: sizes compared with mpi-operator's recipe, a build with warm caches, latency between two containers."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench._engine import engine
from bench._images_pair import execute, two_containers
from bench._launch import MPIBOOT
from bench._peers_image import peers_image
from bench.harness import Row, in_turn
from mpiboot.containers.client import docker_cli
from mpiboot.images.build.base import bootstrap

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker
    from docker.models.containers import Container

RUNTIMES = ("openmpi", "mpich", "intel")
GOALS = {"openmpi": 185, "mpich": 275, "intel": 370}
PINGPONG = Path(__file__).with_name("_images_pingpong.c")
REPEATS = 15
HYDRA = ["-hosts", "w0,w1", "-ppn", "1"]
PATIENCE = 600

# What mpi-operator's users build, written by us: a whole Debian, SSH, then Open MPI, package lists removed.
THEIRS = """
FROM {base}
{clean}
RUN apt-get update && apt-get install -y --no-install-recommends openssh-server openssh-client libcap2-bin {more} \\
 && rm -rf /var/lib/apt/lists/*
RUN apt-get update && apt-get install -y --no-install-recommends openmpi-bin && rm -rf /var/lib/apt/lists/*
{proof}
"""
# A Debian made from packages keeps apt's downloads. These are the settings of a registry's Debian, which removes them;
# PROOF fails if they have no effect.
CLEAN = r"""
RUN clean='rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true' \
 && printf '%s { "'"$clean"'"; };\n' DPkg::Post-Invoke APT::Update::Post-Invoke >/etc/apt/apt.conf.d/docker-clean \
 && printf '%s "";\n' Dir::Cache::pkgcache Dir::Cache::srcpkgcache >>/etc/apt/apt.conf.d/docker-clean
"""
PROOF = 'RUN test -z "$(find /var/cache/apt -type f -size +0)"'


def measure() -> list[Row]:
    with engine() as client:
        _build(*RUNTIMES, *[f"{name}-dev" for name in RUNTIMES])
        return [*_sizes(client), *_latency(client), _build_time(), _check_time()]


def versions() -> dict[str, str]:
    with engine() as client:
        label = "org.opencontainers.image.version"
        built = {name: client.images.get(f"mpiboot/{name}").labels[label] for name in RUNTIMES}
        return {"docker": str(client.version()["Version"]), **built}


def _build(*names: str) -> None:
    _run([MPIBOOT, "images", "build", *names])


def _sizes(engine: docker.DockerClient) -> list[Row]:
    base = bootstrap(engine, tag="mpiboot-bench/debian", left_out=())
    kept = _size_of_theirs(engine, base)
    removed = _size_of_theirs(engine, base, clean=True)
    without_systemd = _size_of_theirs(engine, base, clean=True, more="systemd-standalone-sysusers")
    own = {name: _size(engine, f"mpiboot/{name}") for name in RUNTIMES}
    what = "image with Python, mpi4py, mpiboot"
    return [
        *[Row(f"{name} {what}", "MB", [own[name]], limit=GOALS[name]) for name in RUNTIMES],
        Row(
            "openmpi and peers' recipe", "MB", [own["openmpi"]], limit=0.3, beside=[kept], beside_what="theirs",
            note="on a Debian made from packages, where apt keeps its archives",
        ),
        Row(
            "openmpi and peers', archives removed", "MB", [own["openmpi"]], beside=[removed], beside_what="theirs",
            note="as on a registry's Debian; theirs has Debian's documentation, and no Python and mpi4py",
        ),
        Row(
            "openmpi and peers', neither archives nor systemd", "MB", [own["openmpi"]], beside=[without_systemd],
            beside_what="theirs", note="with systemd-standalone-sysusers in place of it, which openssh-server accepts",
        ),
    ]


def _size_of_theirs(engine: docker.DockerClient, base: str, *, clean: bool = False, more: str = "") -> float:
    tag = "mpiboot-bench/theirs"
    recipe = THEIRS.format(base=base, clean=CLEAN if clean else "", proof=PROOF if clean else "", more=more)
    _run([docker_cli(), "build", "--quiet", "--tag", tag, "-"], recipe)
    return _size(engine, tag)


def _size(engine: docker.DockerClient, tag: str) -> float:
    return float(engine.images.get(tag).attrs["Size"]) / 1e6


def _latency(engine: docker.DockerClient) -> list[Row]:
    """Two containers with a rank each, only sshd and mpirun: the latency of the image without any settings."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pairs = []
        for image, runtime in [*((f"mpiboot/{name}", name) for name in RUNTIMES), (peers_image(), "openmpi")]:
            tag = _with_pingpong(folder, image, runtime)
            pairs.append(stack.enter_context(two_containers(engine, tag)))
        hosts = {"openmpi": ["--host", "w0:1,w1:1"], "mpich": HYDRA, "intel": HYDRA}
        ways = [_pingpong(pair, hosts[name]) for pair, name in zip(pairs, [*RUNTIMES, "openmpi"], strict=True)]
        openmpi, mpich, intel, peers = in_turn(REPEATS, *ways)
    return [
        Row("8-byte latency, openmpi", "us", openmpi, limit=20),
        Row("8-byte latency, openmpi and peers", "us", openmpi, beside=peers, beside_what="peers' image"),
        Row("8-byte latency, mpich", "us", mpich, limit=20),
        Row("8-byte latency, intel", "us", intel, limit=20),
    ]


def _pingpong(container: Container, hosts: list[str]) -> Callable[[], float]:
    def once() -> float:
        code, output = execute(container, ["timeout", str(PATIENCE), "mpirun", "-n", "2", *hosts, "pingpong"])
        if code:
            raise RuntimeError(f"pingpong: exit code {code}: {output[-2000:]}")
        return float(re.findall(r"latency ([\d.]+)", output)[0])

    return once


def _with_pingpong(folder: Path, image: str, runtime: str) -> str:
    """The tag of `image` with the program in it, compiled for that runtime."""
    tag = f"mpiboot-bench/pingpong-{re.sub(r'[/:]', '-', image)}"
    (folder / PINGPONG.name).write_text(PINGPONG.read_text())
    (folder / "Dockerfile").write_text(
        f"FROM mpiboot/{runtime}-dev AS compile\nCOPY {PINGPONG.name} /tmp/\n"
        f"RUN mpicc -O2 -o /tmp/pingpong /tmp/{PINGPONG.name}\n"
        f"FROM {image}\nCOPY --from=compile /tmp/pingpong /usr/local/bin/\n"
    )
    _run([docker_cli(), "build", "--quiet", "--tag", tag, str(folder)])
    return tag


def _build_time() -> Row:
    """Run every step of the three images again, under other names. The packages come from the caches."""
    row = 'bench-{0} = {{ runtime = "{0}", accel = "cpu", kind = "runtime" }}'
    rows = "\n".join(row.format(name) for name in RUNTIMES)
    arguments = '[arguments]\nMPI4PY = "4.1.2"\nMPICH = "5.0.2"\nINTEL = "2021.19.0"\n'
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "bench.toml"
        table.write_text(f"{arguments}[images]\n{rows}\n")
        begun = time.monotonic()
        _run([MPIBOOT, "images", "--matrix", str(table), "build", "--again"])
        took = time.monotonic() - begun
    for name in RUNTIMES:
        listed = _run([docker_cli(), "images", "--quiet", f"mpiboot/bench-{name}"]).split()
        _run([docker_cli(), "rmi", "--force", *set(listed)])
    return Row("build the three CPU images, package caches warm", "s", [took], limit=240)


def _check_time() -> Row:
    def check() -> float:
        begun = time.monotonic()
        _run([MPIBOOT, "images", "check", "mpiboot/openmpi", "--require", "hardened"])
        return time.monotonic() - begun

    return Row("images check, all profiles", "s", in_turn(3, check)[0], limit=30)


def _run(command: list[str], text: str | None = None) -> str:
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    done = subprocess.run(command, input=text, text=True, capture_output=True, timeout=PATIENCE, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
