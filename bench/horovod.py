"""Horovod images: sizes, and the time to import the framework, compared with the same image untrimmed."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench._engine import engine
from bench._images_pair import execute
from bench._launch import MPIBOOT
from bench.harness import Row, in_turn
from mpiboot.containers.client import docker_cli
from mpiboot.images.matrix import load

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker
    from docker.models.containers import Container

GOALS = {"torch": 720, "tensorflow": 1350}
REPEATS = 7
PATIENCE = 3600
IMPORT = "import time; t = time.monotonic(); import {0}, horovod.{0}; print('took', time.monotonic() - t)"


def measure() -> list[Row]:
    with engine() as client:
        _mpiboot("images", "build", *[f"horovod-{framework}" for framework in GOALS])
        return [row for framework in GOALS for row in _rows(client, framework)]


def versions() -> dict[str, str]:
    with engine() as client:
        frameworks = {}
        for framework in GOALS:
            script = f"import importlib.metadata as m; print(m.version('{framework.replace('flow', 'flow-cpu')}'))"
            answer = client.containers.run(f"mpiboot/horovod-{framework}", ["python", "-c", script], remove=True)
            frameworks[framework] = answer.decode().strip()
        horovod = client.images.get("mpiboot/horovod-torch").labels["org.opencontainers.image.version"]
        return {"docker": str(client.version()["Version"]), "horovod": horovod, **frameworks}


def _rows(engine: docker.DockerClient, framework: str) -> list[Row]:
    whole = _build_whole(engine, framework)
    own = f"mpiboot/horovod-{framework}"
    sizes = {tag: float(engine.images.get(tag).attrs["Size"]) / 1e6 for tag in (own, whole)}
    with ExitStack() as stack:
        ways = [_import(stack, engine, tag, framework) for tag in (own, whole)]
        for way in ways:
            way()  # the first import reads from the disk, which later ones do not
        ours, theirs = in_turn(REPEATS, *ways)
    return [
        Row(f"horovod-{framework} image", "MB", [sizes[own]], limit=GOALS[framework]),
        Row(f"horovod-{framework} and nothing taken away", "MB", [sizes[own]], beside=[sizes[whole]],
            beside_what="whole"),
        Row(f"import {framework}, horovod.{framework}", "s", ours, limit=1.1, beside=theirs, beside_what="whole"),
    ]  # fmt: skip


def _build_whole(engine: docker.DockerClient, framework: str) -> str:
    """Build the same image without removing parts of its packages, and return its tag."""
    row = load().get(f"horovod-{framework}")
    base = f', base = "{row.base}"' if row.base else ""
    name = f"bench-whole-{framework}"
    table = (
        f'[images]\n{name} = {{ runtime = "{row.runtime}", accel = "{row.accel}", kind = "{row.kind}"{base},'
        f' arguments = {{ MPI4PY = "{row.arguments["MPI4PY"]}", MODE = "whole" }} }}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.toml"
        path.write_text(table)
        _mpiboot("images", "--matrix", str(path), "build")
    # This name is not in `mpiboot images list`. The image stays, so that the next run finds its layers.
    engine.images.get(f"mpiboot/{name}").tag(f"mpiboot-bench/whole-{framework}")
    versions = [tag for tag in engine.images.get(f"mpiboot/{name}").tags if tag.startswith("mpiboot/bench-")]
    subprocess.run([docker_cli(), "rmi", *versions], capture_output=True, check=False)
    return f"mpiboot-bench/whole-{framework}"


def _import(stack: ExitStack, engine: docker.DockerClient, tag: str, framework: str) -> Callable[[], float]:
    container: Container = engine.containers.run(tag, ["sleep", "3600"], detach=True, network_mode="none", init=True)
    stack.callback(container.remove, force=True)

    def once() -> float:
        code, output = execute(container, ["python", "-c", IMPORT.format(framework)])
        if code:
            raise RuntimeError(f"{tag}: the import failed: {output[-2000:]}")
        return float(output.rpartition("took ")[2])

    return once


def _mpiboot(*argv: str) -> None:
    done = subprocess.run([MPIBOOT, *argv], text=True, capture_output=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"mpiboot {' '.join(argv)}: exit code {done.returncode}: {done.stderr[-2000:]}")
