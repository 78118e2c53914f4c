"""Brings back the files that a job wrote (`--fetch`): the launcher collects them, and waits until they are here."""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING

from mpiboot.bootstrap.workdir import archive
from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.kubernetes.namespace_jobs import main_container
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.channels import STDOUT

if TYPE_CHECKING:
    import tarfile
    from typing import IO

    from mpiboot.engines.kubernetes.directory import Listing
    from mpiboot.engines.kubernetes.namespace_jobs import NamespaceJobs
    from mpiboot.engines.kubernetes.snapshot import Snapshot
    from mpiboot.engines.output import Output
    from mpiboot.kube.api import Object
    from mpiboot.kube.channels import Channels

PAUSE = 1.0  # seconds between two tries
SAME_TIME = 0.01  # seconds: a file that was sent, and did not change since
COMMAND = ("mpiboot", "workdir", "give")
CONFIRMED = b"!"


class ResultsFetcher:
    """The results of one job. They are written into the directory that was sent."""

    def __init__(self, jobs: NamespaceJobs, listing: Listing, patterns: tuple[str, ...], output: Output) -> None:
        self._jobs, self._listing, self._patterns, self._output = jobs, listing, patterns, output
        self._sent = {entry.path: entry for entry in listing.entries}
        self._fetching: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._fetched = False

    def update(self, seen: Snapshot) -> None:
        """Ask a launcher that has started since: it answers when its command has ended."""
        for pod in seen.of(LAUNCHER):
            key = (pod.name, pod.began)
            if pod.started and not pod.ended and key not in self._fetching:
                self._fetching[key] = asyncio.create_task(
                    self._fetch(seen.job, pod.name), name=f"results of {pod.name}"
                )

    async def end(self) -> None:
        """The job has ended. Raises UserError if its results are not here."""
        await asyncio.gather(*self._fetching.values())
        if not self._fetched:
            raise UserError("no results were fetched: the launcher ended before it had collected them")

    async def _fetch(self, job: Object, pod: str) -> None:
        told = False
        while True:
            try:
                found = await self._jobs.pod(pod)
                if (found.get("status") or {}).get("phase") != "Running":
                    return
                async with await self._jobs.execute(pod, main_container(job, found), COMMAND) as channels:
                    with tempfile.TemporaryFile() as file:
                        await self._receive(channels, file)
            except (ApiError, UnreachableError) as error:
                if isinstance(error, ApiError) and error.not_found:
                    return
                if not told:
                    told = True
                    self._output.note(f"the connection for the results broke ({error}); mpiboot connects again")
                await asyncio.sleep(PAUSE)
                continue
            self._fetched = True
            return

    async def _receive(self, channels: Channels, file: IO[bytes]) -> None:
        arriving = archive.Arriving(file)
        async for channel, data in channels.output():
            if channel == STDOUT:
                arriving.add(data)
            if arriving.whole:
                break
        if not arriving.whole:
            raise UnreachableError(channels.error or "it ended early")
        file.seek(0)
        count, size = await asyncio.to_thread(self._unpack, file)
        await channels.send(CONFIRMED)
        async for _ in channels.output():
            pass
        if not count:
            self._output.note(f"warning: the job changed no file that matches --fetch {' '.join(self._patterns)}")
        else:
            self._output.note(f"fetched {count} file{'s' if count != 1 else ''} ({size / 1e6:.1f} MB)")

    def _unpack(self, file: IO[bytes]) -> tuple[int, int]:
        """How many files are new or changed, and their bytes."""
        sizes: list[int] = []

        def is_new(member: tarfile.TarInfo) -> bool:
            sent = self._sent.get(member.name)
            if sent and sent.size == member.size and abs(sent.mtime - member.mtime) < SAME_TIME:
                return False
            sizes.append(member.size)
            return True

        archive.unpack(file, str(self._listing.directory), is_new)
        return len(sizes), sum(sizes)
