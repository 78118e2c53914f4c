"""The Docker engine of the benchmarks that need one."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from bench.harness import Unavailable
from mpiboot.containers.client import connect
from mpiboot.containers.endpoint import NoEngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker


@contextmanager
def engine(*images: str) -> Iterator[docker.DockerClient]:
    """A client of the engine, which has these images of ours. Raises Unavailable if something is missing."""
    try:
        client = connect()
    except NoEngineError as missing:
        raise Unavailable(f"a Docker engine ({missing}); get it with: make engine") from None
    with closing(client):
        for tag in images:
            if not client.images.list(tag):
                name = tag.rpartition("/")[2].partition(":")[0]
                raise Unavailable(f"the image {tag}; get it with: make images NAMES={name}")
        yield client
