"""What the commands do on a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from typing import Any

    from mpiboot.controller.remote import Remote
    from mpiboot.engines.request import Program


@asynccontextmanager
async def remote(namespace: str | None) -> AsyncIterator[Remote]:
    """The jobs of a namespace, by default the kubeconfig's own."""
    from mpiboot.controller.api import Api
    from mpiboot.controller.connection import connect
    from mpiboot.controller.remote import Remote

    connection = await connect()
    async with Api(connection) as api:
        yield Remote(api, namespace or connection.namespace)


def on_cluster(namespace: str | None, work: Callable[[Remote], Awaitable[int]]) -> int:
    """The exit code of some work there."""
    from mpiboot.controller.api_error import ApiError, UnreachableError

    async def main() -> int:
        async with remote(namespace) as found:
            return await work(found)

    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        return 130
    except (ApiError, UnreachableError) as error:
        raise UserError(f"the cluster does not answer as it should: {error}") from None


def manifest_of(path: str | None, name: str | None, program: Program | None) -> Mapping[str, Any]:
    """The MPIJob of a file, or the one that runs a program. Without a namespace unless it names one."""
    from mpiboot.engines import request
    from mpiboot.job import manifest, quick

    if path is not None:
        text = request.text_of(path)
        requested = request.from_text(text, path, name)  # checked before the cluster is asked, with line numbers
        data = {**manifest.load(text, requested.source).data}
        return {**data, "metadata": {**(data.get("metadata") or {}), "name": requested.job.job.name}}
    assert program
    if not program.image:
        raise UserError("a cluster needs an image: mpiboot run --engine kubernetes [OPTIONS] IMAGE -- PROGRAM")
    data = dict(quick.manifest_for(
        program.name or request.name_for(program.command), program.image, program.command, program.processes,
        program.workers, implementation=program.implementation, slots=program.slots, env=program.env,
        ssh_auth_mount_path=program.ssh_dir,
    ))  # fmt: skip
    metadata = {key: value for key, value in data["metadata"].items() if key != "namespace"}
    return {**data, "metadata": metadata}


def run(manifest: Mapping[str, Any], *, quiet: bool) -> int:
    """Run a job there to its end; the exit code is its launcher's."""
    from mpiboot.controller.attend import attend

    def say(text: str) -> None:
        if not quiet:
            print(f"mpiboot: {text}", file=sys.stderr)

    namespace = manifest["metadata"].get("namespace")
    return on_cluster(namespace, lambda found: attend(found, manifest, say))


def logs(name: str, namespace: str | None, *, follow: bool) -> int:
    """Print what a job's launchers have printed."""

    async def work(found: Remote) -> int:
        look = await found.look(name)
        pods = [pod for pod in look.of("launcher") if pod.phase not in {"Pending", "Unknown"}]
        if not pods:
            raise UserError(f"the launcher of {name} has not started yet: mpiboot status {name}")
        for pod in pods:
            async for chunk in found.output(pod.name, follow=follow):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
        return 0

    return on_cluster(namespace, work)


def scale(name: str, workers: int, namespace: str | None) -> int:
    """Give a job there so many workers."""

    async def work(found: Remote) -> int:
        before = await found.scale(name, workers)
        print(f"{name}: {before} -> {workers} workers (kubernetes)")
        return 0

    return on_cluster(namespace, work)


def delete(name: str, namespace: str | None) -> int:
    """Delete a job there, with all that belongs to it."""

    async def work(found: Remote) -> int:
        await found.delete(name)
        print(f"{name} is gone (kubernetes)")
        return 0

    return on_cluster(namespace, work)
