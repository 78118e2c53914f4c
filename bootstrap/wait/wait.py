"""The wait: it ends when enough workers are ready, or with an error that names those that are not."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from mpiboot.bootstrap import exit_codes
from mpiboot.bootstrap.hosts import is_own, short_name
from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.process.signals import ENDING, EndedBySignalError
from mpiboot.bootstrap.wait.addresses import AddressFile
from mpiboot.bootstrap.wait.loop import Loop
from mpiboot.bootstrap.wait.worker_table import Policy, Verdict, WorkerTable
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.hosts import Entry
    from mpiboot.bootstrap.process.signals import Signals
    from mpiboot.bootstrap.wait.loop import Login, Ports
    from mpiboot.bootstrap.wait.worker_table import Worker

    Mark = Callable[..., None]  # mark(event, **more): for a timeline


class OutOfTimeError(UserError):
    """Not enough workers in time. The text lists each missing worker."""

    exit_code = exit_codes.OUT_OF_TIME


def loop_for(
    config: BootConfig, entries: tuple[Entry, ...], ports: Ports, login: Login | None, log: Callable[[str], None]
) -> Loop:
    """The loop with all sources that the configuration names. It does not wait for the launcher's own line."""
    own, size = socket.gethostname(), config.size
    policy = Policy(
        limit=config.init_timeout,
        at_least=size.fewest_workers(entries[0].slots if entries else 1) if size else 0,
        probe=config.probe != "none",
        trust_check_in=config.probe != "all",
        other_sources=bool(config.addresses or config.checkin),
        elastic=size is not None,
    )
    others = [entry for entry in entries if not is_own(entry.name, own)]
    table = WorkerTable(others, policy, time.monotonic())
    stream = None
    if config.checkin:
        from mpiboot.checkin.client import Stream

        try:
            stream = Stream(*config.checkin)
        except ValueError as error:
            raise UserError(f"MPIBOOT_CHECKIN, MPIBOOT_JOB or MPIBOOT_TOKEN is wrong: {error}") from error
    file = AddressFile(config.addresses) if config.addresses else None
    return Loop(table, file, stream, ports, login, log)


class Meanwhile(Protocol):
    """What has to be done before a command starts again, while the launcher waits for the workers."""

    def done(self, now: float) -> bool: ...
    def step(self, now: float) -> float: ...  # the time of the next call
    def collect(self, events: Iterable[reaper.Ended | reaper.Stopped], now: float) -> None: ...


def until_ready(
    loop: Loop,
    config: BootConfig,
    signals: Signals,
    mark: Mark,
    log: Callable[[str], None],
    meanwhile: Meanwhile | None = None,
) -> None:
    """Returns when enough workers are ready. Raises when the time is over, or when a signal ends the wait."""
    table = loop.table
    live = _live if os.isatty(2) else None
    progress = Progress(table, log, live)
    received: list[int] = []
    loop.add(signals, lambda _: received.extend(signals.take()))
    try:
        _wait(loop, config, mark, progress, received, meanwhile)
    finally:
        loop.drop(signals)
        if live:
            live("")
    mark("ready")
    if table.workers:
        took = time.monotonic() - table.started
        log(f"{table.ready_count} of {len(table.workers)} workers ready after {took:.1f} s")


def look_around(loop: Loop, seconds: float) -> None:
    """Probe until all workers are ready, or the time is over."""
    ends = time.monotonic() + seconds
    while loop.table.waiting() and time.monotonic() < ends:
        loop.step(ends)


def _wait(
    loop: Loop, config: BootConfig, mark: Mark, progress: Progress, received: list[int], meanwhile: Meanwhile | None
) -> None:
    table, addressed, revision, check_at, next_step = loop.table, False, -1, 0.0, float("inf")
    verdict = Verdict.WAIT
    while True:
        now = time.monotonic()
        if received:
            events = _handle_signals(received)
            if meanwhile:
                meanwhile.collect(events, now)
        if meanwhile:
            next_step = meanwhile.step(now)
        if table.revision != revision or now >= check_at:
            if not addressed and all(worker.endpoint for worker in table.workers.values()):
                addressed = True
                mark("addresses")
            verdict = table.verdict(now)
            revision, check_at = table.revision, table.gives_up_at(now)
            if verdict is Verdict.OUT_OF_TIME:
                raise OutOfTimeError(exit_codes.out_of_time(table, now, config.init_timeout))
        if verdict is Verdict.GO and (meanwhile is None or meanwhile.done(now)):
            return
        loop.step(min(progress.tick(now), check_at, next_step))


def _handle_signals(received: list[int]) -> list[reaper.Ended | reaper.Stopped]:
    """Collect children that ended, orphans too, as process 1 must, and end the wait if a signal says so."""
    events = reaper.reap()
    ending = next((number for number in received if number in ENDING), None)
    received.clear()
    if ending is not None:
        raise EndedBySignalError(ending, "waiting for workers")
    return events


def _live(text: str) -> None:
    """Replace the last line of the terminal."""
    with suppress(OSError):  # the terminal has gone; the job goes on
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


AT_MOST_EVERY = 1.0
FRAMES_EVERY = 0.1
_NAMED = 4


class Progress:
    """Logs the progress when it changes, at most once a second. A job that starts at once logs nothing."""

    def __init__(self, table: WorkerTable, say: Callable[[str], None], live: Callable[[str], None] | None) -> None:
        self._table, self._say, self._live = table, say, live
        self._last_line, self._next_at = "", table.started + AT_MOST_EVERY

    def tick(self, now: float) -> float:
        """Log what is new, if it is time. Returns the time of the next call."""
        table = self._table
        if self._live is not None:
            self._live(line(table, now))
            return now + FRAMES_EVERY
        if now < self._next_at:
            return self._next_at
        text = f"{len(table.ready())} {waiting_for(table.waiting())}"
        if text == self._last_line:
            return float("inf")
        self._last_line, self._next_at = text, now + AT_MOST_EVERY
        self._say(line(table, now))
        return self._next_at


def line(table: WorkerTable, now: float) -> str:
    """How many workers are ready, after how long, and which are missing."""
    ready, total = table.ready_count, len(table.workers)
    of = f"{ready}/{total} workers ready after {now - table.started:.1f} s"
    enough = f" (at least {table.needed} needed)" if table.needed < total else ""
    waiting = table.waiting()
    return f"{of}{enough}; waiting for {waiting_for(waiting)}" if waiting else of + enough


def waiting_for(hosts: Sequence[Worker]) -> str:
    """The first few missing workers, each with its reason, and the number of the others."""
    named = ", ".join(f"{short_name(worker.name)} ({worker.why_not})" for worker in hosts[:_NAMED])
    return f"{named} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else named
