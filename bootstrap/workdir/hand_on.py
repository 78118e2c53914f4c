"""Waits for the working directory, and unpacks it here and on every worker before the first rank."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import exit_codes
from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.workdir import archive, on_hosts, places
from mpiboot.bootstrap.workdir.on_hosts import LAUNCHER, Work
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.bootstrap.process.signals import Signals

TOLD_AFTER = 3.0  # seconds
NAMED = 3  # hosts whose trouble is named


class NeverCameError(UserError):
    """The directory did not come in time."""

    exit_code = exit_codes.OUT_OF_TIME


class NotHandedOnError(UserError):
    """A host could not take the directory."""

    exit_code = exit_codes.NO_DATA


class Expected(NamedTuple):
    """The directory that comes, and how many seconds may pass without a byte of it."""

    directory: str
    patience: float


def bring(
    expected: Expected, hosts: Sequence[str], ssh_config: str, environ: Mapping[str, str], signals: Signals,
    log: Callable[[str], None],
) -> None:  # fmt: skip
    """Return when the directory is on this host and on all others."""
    path = places.incoming(environ)
    _wait(path, expected, signals, log)
    began, size = time.monotonic(), os.path.getsize(path)
    words = ("unpack", expected.directory)
    work = {LAUNCHER: Work(on_hosts.here(*words), stdin=path)}
    work |= {host: Work(on_hosts.on_worker(host, ssh_config, *words), stdin=path) for host in hosts}
    troubles = on_hosts.run_all(work, environ, signals, "handing on the working directory")
    with suppress(OSError):
        os.unlink(path)
    if troubles:
        more = f"; and {len(troubles) - NAMED} more" if len(troubles) > NAMED else ""
        named = "; ".join(f"{host}: {why}" for host, why in list(troubles.items())[:NAMED])
        raise NotHandedOnError(f"the working directory is not complete: {named}{more}")
    if (seconds := time.monotonic() - began) > 1:
        log(f"the working directory ({size / 1e6:.1f} MB packed) is on {len(work)} hosts after {seconds:.1f} s")


def _wait(path: str, expected: Expected, signals: Signals, log: Callable[[str], None]) -> None:
    """Return when the archive is there. Bytes that come prolong the wait."""
    came, last = 0, time.monotonic()
    tell_at = last + TOLD_AFTER
    while not os.path.exists(path):
        on_hosts.end_if_asked(signals, "waiting for the working directory")
        reaper.reap()  # orphans, as process 1 must
        now, size = time.monotonic(), archive.growing(path)
        if size != came:
            came, last = size, now
        if now >= tell_at:
            log("waiting for the working directory, which `mpiboot run` sends")
            tell_at = float("inf")
        if now - last >= expected.patience:
            raise NeverCameError(
                f"the working directory for {expected.directory} did not come: no byte of it for "
                f"{expected.patience:g} s; `mpiboot run`, which sends it, has ended or does not reach this pod"
            )
        signals.wait(on_hosts.LOOK_EVERY)
