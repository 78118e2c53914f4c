"""One worker as the launcher knows it, and what counts as ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.addresses import Place, is_address

if TYPE_CHECKING:
    from mpiboot.bootstrap.hostfile import Entry
    from mpiboot.checkin.client import WorkerState
    from mpiboot.ssh.failure import Failure


class Policy(NamedTuple):
    """What counts as ready, and how long that may take. `limit` in seconds; `at_least` 0: all workers."""

    limit: float
    at_least: int = 0
    probe: bool = True
    trust_check_in: bool = True  # else even a worker that checked in is tried
    told_elsewhere: bool = False  # a stream or a file of addresses is configured, so DNS has time
    elastic: bool = False  # whoever tells places also tells what workers there are


class Host:
    """One worker. Times are of the monotonic clock."""

    __slots__ = (
        "ask_again", "attempts", "by_dns", "by_file", "by_stream", "checked_in", "clock_from", "confirming", "dns_from",
        "doubted", "failure", "greeted", "lookups", "name", "named_after", "pending", "probing", "ready", "slots",
        "state", "try_at", "uid",
    )  # fmt: skip

    def __init__(self, entry: Entry, now: float, dns_from: float) -> None:
        self.name, self.slots = entry
        self.dns_from = dns_from
        self.by_stream: Place | None = None
        self.by_file: Place | None = None
        self.by_dns: Place | None = Place(entry.name) if is_address(entry.name) else None
        self.failure: Failure | None = None
        self.ready = self.checked_in = self.probing = self.confirming = self.doubted = self.ask_again = False
        self.attempts = self.lookups = 0
        self.greeted = self.named_after = 0.0
        self.try_at = now
        self.clock_from: float | None = now  # None: it is known to wait for a machine or an image
        self.pending = ""
        self.state: WorkerState | None = None
        self.uid = ""

    @property
    def place(self) -> Place | None:
        return self.by_stream or self.by_file or self.by_dns

    @property
    def why_not(self) -> str:
        """Why it is not ready, in a few words."""
        if self.pending:
            return self.pending
        return str(self.failure or ("no address" if self.place is None else "not tried yet"))
