"""What `follow` needs from wherever a job runs: containers, processes."""

from __future__ import annotations

from typing import Protocol


class CancelledError(Exception):
    """Bringing a job up was given up on request."""


class Place(Protocol):
    """One job in one place. Every method may be called from any thread; those that take long are called in one.

    What happens there by itself arrives in the inbox that the place was made with: `Ended` for each process of the job,
    once for each time it was started.
    """

    def bring_up(self) -> None:
        """Create everything and start it, the launcher too; raises `CancelledError` soon after `cancel`."""

    def cancel(self) -> None:
        """Give up bringing it up."""

    def start_again(self, who: str) -> None:
        """Start a process of the job that has ended once more."""

    def lose(self, who: str) -> None:
        """A worker of an elastic job has ended: its launcher is not told of it until it is started again."""

    def resize(self, workers: int) -> None:
        """Give a running elastic job so many workers: new ones are started, those with the highest numbers removed."""

    def signal(self, who: str, signum: int) -> None:
        """Send a signal to a process of the job; nothing happens if it is gone."""

    def remove(self) -> None:
        """Kill what runs and remove all that belongs to the job, also what is half made. Returns when it is gone."""
