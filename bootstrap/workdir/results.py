"""Files that the job wrote: collected from all hosts when the command has ended, and given to `mpiboot run`.

`mpiboot run` starts `give` in the launcher's container while the job runs. It waits for the files, writes them to
stdout, and learns from its stdin that all of them arrived. Only then the launcher ends.
"""

from __future__ import annotations

import os
import stat
import tarfile
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.workdir import globs, on_hosts, places
from mpiboot.bootstrap.workdir.archive import ArchiveError
from mpiboot.bootstrap.workdir.on_hosts import LAUNCHER, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals

LOOK_EVERY = 0.1  # seconds
QUICKLY = 1  # of gzip's levels
CONFIRMED = b"!"


def offer(
    directory: str, patterns: str, hosts: Sequence[str], ssh_config: str, environ: Mapping[str, str], signals: Signals,
    patience: float, log: Callable[[str], None],
) -> None:  # fmt: skip
    """Collect the files, and return when they are fetched. The first worker, which has rank 0, comes first."""
    place = places.results(environ)
    os.makedirs(f"{place}.part", 0o700, exist_ok=True)
    words = ("pack", directory, *patterns.splitlines())
    work = {host: Work(on_hosts.on_worker(host, ssh_config, *words)) for host in hosts}
    work[LAUNCHER] = Work(on_hosts.here(*words))
    numbered = enumerate(work.items())
    work = {host: each._replace(stdout=f"{place}.part/{number:06}") for number, (host, each) in numbered}
    for host, why in on_hosts.run_all(work, environ, signals, "collecting the results").items():
        log(f"no results from {host}: {why}")
    os.rename(f"{place}.part", place)
    last, written = time.monotonic(), 0.0
    while not os.path.exists(f"{place}/fetched"):
        on_hosts.end_if_asked(signals, "waiting for `mpiboot run` to fetch the results")
        reaper.reap()
        with suppress(OSError):  # `give` shows that it writes
            if (now := os.stat(f"{place}/lives").st_mtime) != written:
                last, written = time.monotonic(), now
        if time.monotonic() - last > patience:
            log(f"the results were not fetched: nothing asked for them for {patience:g} s")
            return
        signals.wait(LOOK_EVERY)


def give(environ: Mapping[str, str], target: IO[bytes], source: Callable[[int], bytes]) -> None:
    """Write all results, when they are there, and wait for the word that they arrived."""
    place = places.results(environ)
    while not os.path.isdir(place):
        time.sleep(LOOK_EVERY)
    taken = set[str]()
    with tarfile.open(fileobj=target, mode="w|gz") as given:
        for name in sorted(os.listdir(place)):
            if name.isdigit():
                for header, content in _members(f"{place}/{name}"):
                    if header.name not in taken:
                        taken.add(header.name)
                        given.addfile(header, content)
                    with open(f"{place}/lives", "w", encoding="ascii"):
                        pass
    target.flush()
    if source(1) == CONFIRMED:
        with open(f"{place}/fetched", "w", encoding="ascii"):
            pass


def pack(directory: str, patterns: Sequence[str], target: IO[bytes]) -> None:
    """Write the files of a directory that match one of the patterns."""
    matching = [globs.pattern(each) for each in patterns]
    with tarfile.open(fileobj=target, mode="w|gz") as packed:
        for path in _files(directory):
            name = os.path.relpath(path, directory)
            above = [name, *(name[:at] for at, letter in enumerate(name) if letter == "/")]
            if any(each.fullmatch(part) for each in matching for part in above):
                try:
                    with open(path, "rb") as file:
                        header = packed.gettarinfo(arcname=name, fileobj=file)
                        header.type, header.linkname = tarfile.REGTYPE, ""
                        packed.addfile(header, file)
                except OSError as error:
                    raise ArchiveError(f"cannot read {path}: {error.strerror or 'it changes'}") from None


def _files(directory: str) -> Iterator[str]:
    for parent, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(parent, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _members(path: str) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    try:
        with tarfile.open(path, "r:gz") as archive:
            for header in archive:
                yield header, archive.extractfile(header)
    except (tarfile.TarError, EOFError, OSError):
        return  # a host that failed; the launcher has named it
