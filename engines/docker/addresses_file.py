"""The files from which a running launcher learns its workers: the addresses, and the script that lists the hosts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mpiboot.engines.docker import volumes
from mpiboot.engines.pods import local_plan
from mpiboot.job import elastic, names
from mpiboot.job.plan.host_lists import discovery_script
from mpiboot.job.plan.objects import DISCOVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

    from mpiboot.engines.docker.podspec import ContainerSpec
    from mpiboot.job.job_annotations import LaunchMode
    from mpiboot.job.model import Job


class AddressesFile:
    """Written when all workers are there for the first time, then after each change."""

    def __init__(self, api: APIClient, job: Job, filler: str, launcher: ContainerSpec, mode: LaunchMode) -> None:
        self._api, self._job, self._filler, self._launcher = api, job, filler, launcher
        # A launcher that waits by itself keeps a list of its own, which its script prints.
        self._writes_script = elastic.of_job(job) is not None and mode != "in-place"
        self._lock = threading.Lock()
        self._addresses: dict[int, str] = {}
        self._all_were_there = False

    def add(self, index: int, address: str) -> None:
        with self._lock:
            if index < self._job.workers:  # else it was removed meanwhile
                self._addresses[index] = address
                self._write()

    def remove(self, index: int) -> None:
        with self._lock:
            self._addresses.pop(index, None)
            self._write()

    def set_job(self, job: Job) -> None:
        """From now on the job has another number of workers; removed workers are forgotten."""
        with self._lock:
            self._job = job
            self._addresses = {index: at for index, at in self._addresses.items() if index < job.workers}
            self._write()

    def _write(self) -> None:
        self._all_were_there |= len(self._addresses) == self._job.workers
        if not self._all_were_there or not all(self._addresses.values()):
            return
        for path, text, mode in self._files():
            self._api.put_archive(self._filler, "/", volumes.one_file(path, text.encode(), mode))

    def _files(self) -> Iterator[tuple[str, str, int]]:
        spec, job = self._launcher, self._job
        for volume in (mount.volume for mount in spec.mounts if mount.volume.addresses):
            yield f"{volumes.key(spec, volume)}/{volume.addresses}", local_plan.addresses(job, self._addresses), 0o444
        if not self._writes_script:
            return
        hosts = names.worker_hosts(job)
        script = discovery_script((hosts[i] for i in sorted(self._addresses)), job.slots_per_worker, job.dialect)
        for mount in spec.mounts:
            if mount.target == names.CONFIG_DIR and mount.volume.kind == "files":
                yield f"{volumes.key(spec, mount.volume)}/{DISCOVER}", script, 0o555
