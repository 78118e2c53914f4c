"""Publishes built images where jobs find them: in a registry, a kind cluster, a containerd."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.containers.client import docker_cli
from mpiboot.images.build.base import last_line
from mpiboot.images.matrix import REPOSITORY
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import docker

    from mpiboot.images.matrix import Matrix


def built_tags(
    engine: docker.DockerClient, matrix: Matrix, names: Sequence[str], accel: str | None = None
) -> tuple[str, ...]:
    """All tags of the named images, which must be built, or of all built images; with `accel`, only of those for it."""
    tags: list[str] = []
    for row in matrix.narrow(matrix.named(names) or tuple(matrix.rows.values()), accel):
        found = engine.images.list(row.latest)
        if not found and names:
            raise UserError(f"{row.name} is not built; build it with: mpiboot images build {row.name}")
        tags += [tag for image in found for tag in image.tags if tag.startswith(f"{row.repository}:")]
    if not tags:
        which, option = (f"no image for {accel}", f" --accel {accel}") if accel else ("no image", "")
        raise UserError(f"{which} is built yet; build them with: mpiboot images build{option}")
    return tuple(sorted(tags))


def version_tag(tags: Sequence[str]) -> str:
    """Of the tags of one image the one that names its version."""
    return next((tag for tag in tags if not tag.endswith(":latest")), tags[0])


def remote_tag(tag: str, registry: str) -> str:
    """The name of `tag` in a registry. It always contains `mpiboot`: the operator recognizes our images by that.

    Below a path it is one level, `team/mpiboot-openmpi`: many registries allow no more than two levels.
    """
    registry = registry.removeprefix("https://").removeprefix("http://").rstrip("/")
    name = tag.removeprefix(f"{REPOSITORY}/")
    if registry.endswith(f"/{REPOSITORY}"):
        return f"{registry}/{name}"
    return f"{registry}/{REPOSITORY}-{name}" if "/" in registry else f"{registry}/{REPOSITORY}/{name}"


class Published(NamedTuple):
    """An image in a registry. Its digest stays the same there, whatever its tag will name later."""

    name: str
    digest: str

    @property
    def pinned(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest else self.name


def push(
    engine: docker.DockerClient, matrix: Matrix, names: Sequence[str], registry: str, accel: str | None = None
) -> Iterator[Published]:
    """Push each tag and yield it once the registry has it. The push uses the engine's own login."""
    for tag in built_tags(engine, matrix, names, accel):
        there = remote_tag(tag, registry)
        _run_or_fail([docker_cli(), "tag", tag, there], f"the engine did not tag {tag} as {there}")
        try:
            done = _run_or_fail([docker_cli(), "push", there], f"the registry did not accept {there}")
        finally:
            subprocess.run([docker_cli(), "rmi", "--no-prune", there], capture_output=True, check=False)
        digest = re.search(r"digest: (sha256:[0-9a-f]{64})", done.stdout)
        yield Published(there, digest[1] if digest else "")


def published(engine: docker.DockerClient, name: str) -> Published:
    """What a registry has under this name. The engine asks the registry, with its own login."""
    from docker.errors import DockerException

    try:
        found = engine.api.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except DockerException as error:
        why = str(getattr(error, "explanation", None) or error).strip()
        fix = "push it with --push, or leave digests out with --tags"
        raise UserError(f"the registry does not show {name}: {last_line(why)}; {fix}") from error
    return Published(name, str(found["Descriptor"]["digest"]))


def load(
    engine: docker.DockerClient,
    matrix: Matrix,
    names: Sequence[str],
    kind: str | None,
    containerd: str | None,
    namespace: str,
) -> Iterator[str]:
    """Load all tags into the cluster's nodes or the containerd, then yield them."""
    if (kind is None) == (containerd is None):
        raise UserError("the destination is not clear; give one of --kind CLUSTER and --containerd SOCKET")
    program = _program("kind" if kind else "ctr")
    tags = built_tags(engine, matrix, names)
    if kind:
        command = [program, "load", "docker-image", "--name", kind, *tags]
        _run_or_fail(command, f"the kind cluster {kind} did not load the images")
    elif containerd:
        _import([program, "--address", containerd, "--namespace", namespace, "images", "import", "-"], tags)
    yield from tags


def _import(command: Sequence[str], tags: Sequence[str]) -> None:
    """Import all images in one stream: docker sends a layer that several images share only once."""
    with subprocess.Popen([docker_cli(), "save", *tags], stdout=subprocess.PIPE) as save:
        done = subprocess.run(command, stdin=save.stdout, capture_output=True, text=True, check=False)
    if done.returncode != 0 or save.returncode != 0:
        raise UserError(f"containerd did not import the images: {last_line(done.stderr)}")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UserError(f"the program {name} is missing; install it (Debian: ctr is in the package containerd)")
    return path


def _run_or_fail(command: Sequence[str], complaint: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{complaint}: {last_line(done.stderr)}")
    return done
