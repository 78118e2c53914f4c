"""The contract that every engine fulfils: containers (docker), processes (local), an MPIJob of a cluster (kubernetes).

`follow.py` makes all decisions about a running job and knows an engine only by this protocol.
"""

from __future__ import annotations

from typing import Protocol


class CancelledError(Exception):
    """The start of a job was cancelled."""


class Engine(Protocol):
    """One run of one job. A process of the job is known by its name: `launcher`, `worker-0`.

    Any thread may call any method, and `follow.py` calls those that take long in a thread of their own. The engine puts
    its events into the inbox that it was made with: one `Ended` for each process, each time that it was started.
    """

    def start(self) -> None:
        """Create everything and start it, the launcher too; raises `CancelledError` soon after `cancel`."""

    def cancel(self) -> None:
        """Stop starting and creating things."""

    def restart(self, process: str) -> None:
        """Start a process again that has ended. Nothing happens if `scale` has removed it meanwhile."""

    def withdraw(self, worker: str) -> None:
        """Take a worker of an elastic job that has ended out of the launcher's list, until it is started again."""

    def scale(self, workers: int) -> None:
        """Give a running elastic job this number of workers: start new ones, or remove the highest numbers."""

    def signal(self, process: str, number: int) -> None:
        """Send a signal to a process; nothing happens if it is gone."""

    def remove(self) -> None:
        """Kill all processes and remove everything of the job, also what is half made. Returns when it is gone."""
