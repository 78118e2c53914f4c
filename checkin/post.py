"""The worker's end: tell every replica of the server that this worker accepts connections."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.checkin import messages, pauses, wire
from mpiboot.checkin.dial import ANSWER_WITHIN, CONNECT_WITHIN, Address, DialError, connect, exchange, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpiboot.checkin.messages import Report

# What repeating cannot mend. 403 is not among them: a server that has just started may not know the job yet.
_FINAL = frozenset({400, 404, 405, 409, 411, 413, 431})


class Posted(NamedTuple):
    """Which addresses took the report, and the last word of those that did not."""

    accepted: tuple[str, ...]
    failures: tuple[str, ...]


def post(urls: Sequence[str], job: str, index: int, report: Report, token: str, deadline: float) -> Posted:
    """Tell every address behind `urls` that this worker accepts connections; blocks until all know, or the deadline.

    `job` is NAMESPACE/NAME, `deadline` a `time.monotonic()` value. An empty `report.address` becomes the address from
    which this machine reaches the server. Each replica keeps its own picture, hence every address; one that is
    silent does not hold up the others. Raises `wire.WireError` for a malformed url, job or token, nothing else.
    """
    wire.check_target(urls, job, token)
    told: dict[Address, str] = {}  # to an empty text if accepted, to the reason if refused for good
    pause = pauses.FIRST
    while True:
        failed: dict[str, str] = {}
        try:
            addresses = resolve(urls)
        except DialError as error:
            addresses, failed[""] = [], str(error)
        attempt = _Attempt(job, index, report, token, deadline, told, failed)
        attempt.at_all(address for address in addresses if address not in told)
        left = deadline - time.monotonic()
        if not failed or left <= 0:
            break
        time.sleep(min(pauses.jittered(pause), left))
        pause = pauses.after(pause)
    refused = {str(address): reason for address, reason in told.items() if reason}
    failures = (f"{where}: {why}" if where else why for where, why in (refused | failed).items())
    return Posted(tuple(str(address) for address, reason in told.items() if not reason), tuple(failures))


class _Attempt(NamedTuple):
    """One try at some addresses, all at once. Each of them lands in `told` or in `failed`."""

    job: str
    index_: int
    report: Report
    token: str
    deadline: float
    told: dict[Address, str]
    failed: dict[str, str]

    def at_all(self, addresses: Iterable[Address]) -> None:
        threads = [threading.Thread(target=self._at, args=(a,), name=f"check-in {a}", daemon=True) for a in addresses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _at(self, address: Address) -> None:
        try:
            status, text = self._say(address)
        except DialError as error:
            self.failed[str(address)] = str(error)
            return
        if status < 300:
            self.told[address] = ""
        elif status in _FINAL:
            self.told[address] = f"{status} {text}"
        else:
            self.failed[str(address)] = f"{status} {text}"

    def _say(self, address: Address) -> tuple[int, str]:
        left = max(0.1, self.deadline - time.monotonic())
        with connect([address], min(CONNECT_WITHIN, left))[1] as sock:
            sock.settimeout(min(ANSWER_WITHIN, left))
            here = self.report._replace(address=self.report.address or sock.getsockname()[0])
            path = wire.worker_path(self.job, self.index_)
            return exchange(sock, wire.form_request("POST", path, address.name, self.token, messages.form_report(here)))
