"""The workers that can take ranks of an elastic job now: a file for discovery scripts, and a log line a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.bootstrap import files
from mpiboot.bootstrap.hosts import short_name
from mpiboot.bootstrap.run import access

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.bootstrap.run.rundir import RunDir
    from mpiboot.bootstrap.wait.worker_table import WorkerTable
    from mpiboot.ssh.client import Client

_NAMED = 8


class LiveHosts:
    """Writes the list when the table has changed. A call without a change costs nothing."""

    def __init__(self, table: WorkerTable, run: RunDir, client: Client, log: Callable[[str], None]) -> None:
        self._table, self._run, self._client, self._log = table, run, client, log
        self._ready = [worker.name for worker in table.ready()]
        self._known: list[tuple[object, ...]] = []  # before the first call ssh knows only the workers that were ready
        self._starts: dict[str, int] = {}
        self._problem = ""

    def update(self) -> None:
        """Write what is new, and log which workers came and went. A failed write is repeated at a later call."""
        try:
            self._publish()
            self._problem = ""
        except OSError as error:
            problem = f"cannot update the list of workers: {error.filename}: {error.strerror}; trying again"
            if problem != self._problem:
                self._problem = problem
                self._log(problem)

    def _publish(self) -> None:
        known = self._places()
        if known != self._known:
            # ssh needs the addresses before a discovery script lists the workers.
            access.publish(self._run, self._client, self._table.workers.values())
            self._known = known
        if self._table.starts != self._starts:
            publish_starts(self._run, self._table)
            self._starts = dict(self._table.starts)
        ready = [worker.name for worker in self._table.ready()]
        if sorted(ready) != sorted(self._ready):
            publish_live(self._run, self._table)
            gone = {worker.name: worker.why_not for worker in self._table.waiting()}
            self._log(change(self._ready, ready, gone))
            self._ready = ready

    def _places(self) -> list[tuple[object, ...]]:
        return [(worker.name, worker.endpoint) for worker in self._table.workers.values()]


def publish_live(run: RunDir, table: WorkerTable) -> None:
    """Write the list that `discover_hosts.sh` and `mpiboot hosts` print: workers whose SSH answers, sorted."""
    lines = sorted(f"{worker.name}:{worker.slots}\n" for worker in table.ready())
    files.write(run.live, "".join(lines))


def publish_starts(run: RunDir, table: WorkerTable) -> None:
    """Write how often each worker was started again. Horovod pauses a host whose rank failed; where its worker was
    started again since, our Horovod ends the pause. A worker must not be listed before this says so.
    """
    files.write(run.starts, "".join(f"{name} {count}\n" for name, count in sorted(table.starts.items())))


def change(before: list[str], after: list[str], why_gone: Mapping[str, str]) -> str:
    """`2 -> 3 workers: + worker-2`. A removed worker that the job still wants has its reason."""
    words = [f"+ {worker_name(name)}" for name in after if name not in before]
    for name in before:
        if name not in after:
            why = why_gone.get(name, "")
            words.append(f"- {worker_name(name)}{f' ({why})' if why else ''}")
    more = f", and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return f"{len(before)} -> {len(after)} workers: {', '.join(words[:_NAMED])}{more}"


def worker_name(name: str) -> str:
    """`worker-2` for `train-worker-2.train.default.svc`; other names without their domain."""
    first = short_name(name)
    _, worker, number = first.rpartition("-worker-")
    return f"worker-{number}" if worker and number.isdigit() else first
