"""The wait: from a configuration to a picture in which enough workers are ready, or one error that says who is not."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from mpiboot.bootstrap import exit as ending
from mpiboot.bootstrap import hostfile, reaper
from mpiboot.bootstrap.addresses import AddressFile
from mpiboot.bootstrap.host import Policy
from mpiboot.bootstrap.picture import Picture, Verdict
from mpiboot.bootstrap.progress import Progress
from mpiboot.bootstrap.readiness import Watch
from mpiboot.bootstrap.signals import ENDING
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.bootstrap.access import Ports
    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.events import Events
    from mpiboot.bootstrap.hostfile import Entry
    from mpiboot.bootstrap.readiness import Login
    from mpiboot.bootstrap.signals import Signals


class OutOfTimeError(UserError):
    """Not enough workers in time; its text lists each that is missing."""

    exit_code = ending.OUT_OF_TIME


class WaitInterruptedError(UserError):
    """A signal ended the wait."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.exit_code = ending.by_signal(number)


def read_entries(config: BootConfig) -> tuple[Entry, ...]:
    """The hosts of the hostfile. None at all is fine where nobody named a file: then there is nothing to wait for."""
    try:
        with open(config.hostfile, encoding="utf-8", errors="replace") as file:
            return hostfile.parse(file.read(), config.hostfile)
    except FileNotFoundError:
        if config.hostfile_is_default:
            return ()
        raise UserError(f"the hostfile {config.hostfile} does not exist; see MPIBOOT_HOSTFILE, --hostfile") from None
    except OSError as error:
        raise UserError(f"cannot read the hostfile {config.hostfile}: {error.strerror}") from error


def watch_for(
    config: BootConfig, entries: tuple[Entry, ...], ports: Ports, login: Login | None, log: Callable[[str], None]
) -> Watch:
    """All that the configuration says to listen to. The launcher's own line in the hostfile needs no waiting."""
    own, size = socket.gethostname(), config.size
    policy = Policy(
        limit=config.init_timeout,
        at_least=size.fewest_workers(entries[0].slots if entries else 1) if size else 0,
        probe=config.probe != "none",
        trust_check_in=config.probe != "all",
        told_elsewhere=bool(config.addresses or config.checkin),
        elastic=size is not None,
    )
    others = [entry for entry in entries if not hostfile.is_own(entry.name, own)]
    picture = Picture(others, policy, time.monotonic())
    stream = None
    if config.checkin:
        from mpiboot.checkin.client import Stream

        stream = Stream(*config.checkin)
    file = AddressFile(config.addresses) if config.addresses else None
    return Watch(picture, file, stream, ports, login, log)


def until_ready(watch: Watch, config: BootConfig, signals: Signals, events: Events, log: Callable[[str], None]) -> None:
    """Returns when enough workers are ready; raises when that cannot happen any more, or a signal says to end."""
    picture = watch.picture
    live = _live if os.isatty(2) else None
    progress = Progress(picture, log, live)
    received: list[int] = []
    watch.add(signals, lambda _: received.extend(signals.take()))
    try:
        _wait(watch, config, events, progress, received)
    finally:
        watch.drop(signals)
        if live:
            live("")
    events.mark("ready")
    if picture.hosts:
        took = time.monotonic() - picture.started
        log(f"{picture.ready_count} of {len(picture.hosts)} workers ready after {took:.1f} s")


def look_around(watch: Watch, seconds: float) -> None:
    """Until all are ready, or the time is over."""
    ends = time.monotonic() + seconds
    while watch.picture.waiting() and time.monotonic() < ends:
        watch.step(ends)


def _wait(watch: Watch, config: BootConfig, events: Events, progress: Progress, received: list[int]) -> None:
    picture, addressed, revision, check_at = watch.picture, False, -1, 0.0
    while True:
        now = time.monotonic()
        if received:
            _heed(received)
        if picture.revision != revision or now >= check_at:
            if not addressed and all(host.place for host in picture.hosts.values()):
                addressed = True
                events.mark("addresses")
            verdict = picture.verdict(now)
            revision, check_at = picture.revision, picture.gives_up_at(now)
            if verdict is Verdict.GO:
                return
            if verdict is Verdict.OUT_OF_TIME:
                raise OutOfTimeError(ending.out_of_time(picture, now, config.init_timeout))
        watch.step(min(progress.tick(now), check_at))


def _heed(received: list[int]) -> None:
    """Process 1 collects orphans even now; a signal that says to end ends the wait."""
    reaper.reap()
    told = next((number for number in received if number in ENDING), None)
    received.clear()
    if told is not None:
        name = signal.Signals(told).name
        raise WaitInterruptedError(told, f"ended by {name} while waiting for workers (exit {ending.by_signal(told)})")


def _live(text: str) -> None:
    """Replace the last line of the terminal."""
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()
