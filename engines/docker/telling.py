"""What a launcher is told of its workers while it runs: the file of addresses, and the script that lists the hosts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mpiboot.engines import planned
from mpiboot.engines.docker import fill
from mpiboot.job import discover, elastic, names
from mpiboot.job.environment import CONFIG_DIR
from mpiboot.job.objects import DISCOVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

    from mpiboot.engines.docker.podspec import ContainerSpec
    from mpiboot.job.model import Job
    from mpiboot.job.wishes import Waits


class Telling:
    """Knows who is where. The launcher hears of it first when all are there, then of each change."""

    def __init__(self, api: APIClient, job: Job, filler: str, launcher: ContainerSpec, waits: Waits) -> None:
        self._api, self._job, self._filler, self._launcher = api, job, filler, launcher
        # One that waits by itself keeps a list of its own, which the script prints as it is.
        self._tells_script = elastic.of_job(job) is not None and waits != "in-place"
        self._lock = threading.Lock()
        self._addresses: dict[int, str] = {}
        self._all_were_there = False

    def came(self, index: int, address: str) -> None:
        with self._lock:
            self._addresses[index] = address
            self._tell()

    def went(self, *indexes: int) -> None:
        with self._lock:
            for index in indexes:
                self._addresses.pop(index, None)
            self._tell()

    def resized(self, job: Job) -> None:
        """The job has other workers from now on: those that are no part of it any more are forgotten."""
        with self._lock:
            self._job = job
            self._addresses = {index: at for index, at in self._addresses.items() if index < job.workers}
            self._tell()

    def _tell(self) -> None:
        self._all_were_there |= len(self._addresses) == self._job.workers
        if not self._all_were_there or not all(self._addresses.values()):
            return
        for path, text, mode in self._files():
            self._api.put_archive(self._filler, "/", fill.one_file(path, text.encode(), mode))

    def _files(self) -> Iterator[tuple[str, str, int]]:
        spec, job = self._launcher, self._job
        for volume in (mount.volume for mount in spec.mounts if mount.volume.addresses):
            yield f"{fill.key(spec, volume)}/{volume.addresses}", planned.addresses(job, self._addresses), 0o444
        if not self._tells_script:
            return
        everyone = names.worker_hosts(job)
        script = discover.script((everyone[i] for i in sorted(self._addresses)), job.slots_per_worker, job.dialect)
        for mount in spec.mounts:
            if mount.target == CONFIG_DIR and mount.volume.kind == "files":
                yield f"{fill.key(spec, mount.volume)}/{DISCOVER}", script, 0o555
