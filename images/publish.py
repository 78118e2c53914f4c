"""Built images to where jobs run: a registry, a kind cluster, a containerd."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from mpiboot.containers import docker_cli
from mpiboot.images.base import last_line
from mpiboot.images.matrix import REPOSITORY
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import docker

    from mpiboot.images.matrix import Matrix


class PublishError(UserError):
    """An image did not get where it should."""


def built_tags(
    engine: docker.DockerClient, matrix: Matrix, names: Sequence[str], accel: str | None = None
) -> tuple[str, ...]:
    """All tags of the images of these names, which must be built, or of all that are; only those for `accel`."""
    tags: list[str] = []
    for row in matrix.narrow(matrix.named(names) or tuple(matrix.rows.values()), accel):
        found = engine.images.list(row.latest)
        if not found and names:
            raise PublishError(f"{row.name} is not built; build it with: mpiboot images build {row.name}")
        tags += [tag for image in found for tag in image.tags if tag.startswith(f"{row.repository}:")]
    if not tags:
        which, option = (f"no image for {accel}", f" --accel {accel}") if accel else ("no image", "")
        raise PublishError(f"{which} is built yet; build them with: mpiboot images build{option}")
    return tuple(sorted(tags))


def remote_tag(tag: str, registry: str) -> str:
    """What `tag` is called there. A path of one's own replaces ours: most registries allow two levels, no more."""
    registry = registry.removeprefix("https://").removeprefix("http://").rstrip("/")
    return f"{registry}/{tag.removeprefix(f'{REPOSITORY}/') if '/' in registry else tag}"


def push(
    engine: docker.DockerClient, matrix: Matrix, names: Sequence[str], registry: str, accel: str | None = None
) -> Iterator[str]:
    """Each tag, after the registry has it. The engine's own login is used."""
    for tag in built_tags(engine, matrix, names, accel):
        there = remote_tag(tag, registry)
        _must([docker_cli(), "tag", tag, there], f"{tag}: cannot be called {there}")
        try:
            _must([docker_cli(), "push", "--quiet", there], f"{there}: the registry did not take it")
        finally:
            subprocess.run([docker_cli(), "rmi", "--no-prune", there], capture_output=True, check=False)
        yield there


def load(
    engine: docker.DockerClient,
    matrix: Matrix,
    names: Sequence[str],
    kind: str | None,
    containerd: str | None,
    namespace: str,
) -> Iterator[str]:
    """Each tag, after the cluster's node, or the containerd, has it."""
    if (kind is None) == (containerd is None):
        raise PublishError("where to? give one of --kind CLUSTER and --containerd SOCKET")
    program = _program("kind" if kind else "ctr")
    tags = built_tags(engine, matrix, names)
    if kind:
        _must([program, "load", "docker-image", "--name", kind, *tags], f"kind cluster {kind}: did not take the images")
    elif containerd:
        _import([program, "--address", containerd, "--namespace", namespace, "images", "import", "-"], tags)
    yield from tags


def _import(command: Sequence[str], tags: Sequence[str]) -> None:
    """All images in one stream: layers that they share travel once."""
    with subprocess.Popen([docker_cli(), "save", *tags], stdout=subprocess.PIPE) as save:
        done = subprocess.run(command, stdin=save.stdout, capture_output=True, text=True, check=False)
    if done.returncode != 0 or save.returncode != 0:
        raise PublishError(f"containerd did not take the images: {last_line(done.stderr)}")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise PublishError(f"the program {name} is missing; install it (Debian: ctr is in the package containerd)")
    return path


def _must(command: Sequence[str], complaint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PublishError(f"{complaint}: {last_line(done.stderr)}")
