"""While the command runs: where its ranks are, whether its workers still run, and which workers an elastic job has."""

# Open MPI's own keepalive needs minutes to notice a lost worker.
from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.bootstrap.run.placement import Placement, contacts, running_mpiruns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.elastic.live_hosts import LiveHosts
    from mpiboot.bootstrap.launcher import Log
    from mpiboot.bootstrap.run.command import Command
    from mpiboot.bootstrap.run.life_signs import LifeSigns
    from mpiboot.bootstrap.run.placement import Slots
    from mpiboot.bootstrap.run.rundir import RunDir
    from mpiboot.bootstrap.wait.worker_table import Worker, WorkerTable


# mpirun may notice the loss itself and print more about it.
COMMAND_MAY_TAKE = 10.0
# It waits in vain for a host whose network is gone.
LOST_MAY_TAKE = 3.0
# The first look for signs of life: imports must not delay mpirun.
LOOK_AFTER = 1.0


def pod_uids(table: WorkerTable) -> dict[str, str]:
    """The uid of the pod of each worker that is ready."""
    return {worker.name: worker.uid for worker in table.ready()}


def lost_worker(table: WorkerTable, pods_at_start: Mapping[str, str]) -> str:
    """Why the job cannot succeed any more; empty as long as it can."""
    for name, uid in pods_at_start.items():
        worker = table.workers.get(name)
        cause = _cause(worker, uid) if worker is not None else ""
        if cause:
            return f"worker {name} was lost while the job ran: {cause}"
    return ""


def _cause(worker: Worker, uid: str) -> str:
    state = worker.state
    if state is None:
        return ""
    if state.state == "failed":
        return state.reason or "its container ended"
    if uid and state.uid and state.uid != uid:
        return f"its pod was replaced{f' ({state.reason})' if state.reason else ''}"
    return ""


# Most mpiruns start at once. A script may call one an hour later, and the search for it must cost nothing.
_CHECKS = ((5.0, 0.1), (60.0, 0.5), (float("inf"), 1.0))  # up to this many seconds: one check in this time


class Supervision:
    """The command's loop calls `check` with the time. It returns the time of the next call."""

    def __init__(
        self,
        config: BootConfig,
        table: WorkerTable,
        run: RunDir,
        slots: Slots,
        log: Log,
        live: LiveHosts | None,
        port_of: Callable[[Worker], int],
    ) -> None:
        """`live` is the list of an elastic job's hosts; without it a lost worker ends the job."""
        self._config, self._table, self._run, self._log, self._live = config, table, run, log, live
        self._placement = Placement(slots) if slots.elsewhere else None
        self._pods_at_start = pod_uids(table)
        self._revision = table.revision if live is None else -1
        self._began: float | None = None
        self._check_at = 0.0
        self._port_of = port_of
        self._signs: LifeSigns | None = None
        watches = live is None and config.lost_worker_timeout and table.workers
        self._look_at = 0.0 if watches else float("inf")
        self._lost, self._end_at = "", float("inf")
        self.warned = False

    def check(self, command: Command, now: float) -> float:
        if self._began is None:
            self._began = now
        if self._table.revision != self._revision:
            self._revision = self._table.revision
            self._workers_changed(now)
        if now >= self._end_at:
            command.end(self._lost)
            self._end_at = float("inf")
        if self._placement and now >= self._check_at:
            self._check_at = now + next(every for until, every in _CHECKS if now - self._began < until)
            self._check_ranks(command, now)
        if now >= self._look_at:
            self._look_at = self._look(command, now)
        return min(self._end_at, self._check_at if self._placement else float("inf"), self._look_at)

    def close(self) -> None:
        if self._signs:
            self._signs.close()

    def _look(self, command: Command, now: float) -> float:
        """Look for signs of life of the workers that are used. The time of the next look."""
        if now == self._began:  # the command starts first: the imports take a moment
            return now + LOOK_AFTER
        from mpiboot.bootstrap.run.diagnosis import contacted
        from mpiboot.bootstrap.run.life_signs import LifeSigns

        if self._signs is None:
            self._signs = LifeSigns(self._config.lost_worker_timeout, self._port_of)
        lost, again = self._signs.step(contacted(self._run, self._table).values(), now)
        if lost:
            command.end(lost, within=LOST_MAY_TAKE)
        return again

    def _workers_changed(self, now: float) -> None:
        if self._live is not None:
            self._live.update()
            return
        cause = lost_worker(self._table, self._pods_at_start)
        if cause and not self._lost:
            self._lost, self._end_at = cause, now + COMMAND_MAY_TAKE
            self._log(f"{cause}; the command has {COMMAND_MAY_TAKE:g} s to end by itself")

    def _check_ranks(self, command: Command, now: float) -> None:
        assert self._placement
        wrong = self._placement.warning(running_mpiruns(command.pid), contacts(self._run.contacted), now)
        if wrong and not self.warned:
            self.warned = True
            if self._config.strict_placement:
                command.end(f"{wrong}; ended, as --strict-placement asks", final=True)
            else:
                self._log(f"WARNING: {wrong}")
