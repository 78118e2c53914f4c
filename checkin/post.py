"""Report to every replica of the server: that a worker accepts connections, or that a launcher's attempt failed."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.checkin import messages, retry_pauses, wire
from mpiboot.checkin.dial import ANSWER_WITHIN, CONNECT_WITHIN, Address, DialError, connect, exchange, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mpiboot.checkin.messages import Attempt, Report

# What no repetition changes. 403 is not among them: a server that has just started may not know the job yet.
_FINAL = frozenset({400, 404, 405, 409, 411, 413, 431})


class Posted(NamedTuple):
    """Which addresses took the report, and the last error of those that did not."""

    accepted: tuple[str, ...]
    failures: tuple[str, ...]


def post(urls: Sequence[str], job: str, index: int, report: Report, token: str, deadline: float) -> Posted:
    """Report to all addresses behind `urls` that this worker accepts connections; blocks until then, or the deadline.

    `job` is NAMESPACE/NAME, `deadline` a `time.monotonic()` value. An empty `report.address` becomes the address from
    which this machine reaches the server. Each replica keeps its own roster, hence every address; one that does
    not answer does not delay the others. Raises `wire.WireError` for a malformed url, job or token, nothing else.
    """

    def body(own_address: str) -> bytes:
        return messages.form_report(report._replace(address=report.address or own_address))

    return _post(urls, job, wire.worker_path(job, index), body, token, deadline)


def post_attempt(urls: Sequence[str], job: str, attempt: Attempt, token: str, deadline: float) -> Posted:
    """Report a failed attempt, in the same way."""
    return _post(urls, job, wire.attempts_path(job), lambda _: messages.form_attempt(attempt), token, deadline)


def _post(
    urls: Sequence[str], job: str, path: str, body: Callable[[str], bytes], token: str, deadline: float
) -> Posted:
    """`body` makes the request's body, from this machine's address towards the server."""
    wire.check_target(urls, job, token)
    settled: dict[Address, str] = {}  # an empty text if accepted, the reason if refused for good
    pause = retry_pauses.FIRST
    while True:
        failed: dict[str, str] = {}
        try:
            addresses = resolve(urls)
        except DialError as error:
            addresses, failed[""] = [], str(error)
        request = _Try(path, body, token, deadline, settled, failed)
        request.at_all(address for address in addresses if address not in settled)
        left = deadline - time.monotonic()
        if not failed or left <= 0:
            break
        time.sleep(min(retry_pauses.jittered(pause), left))
        pause = retry_pauses.after(pause)
    refused = {str(address): reason for address, reason in settled.items() if reason}
    failures = (f"{where}: {why}" if where else why for where, why in (refused | failed).items())
    return Posted(tuple(str(address) for address, reason in settled.items() if not reason), tuple(failures))


class _Try(NamedTuple):
    """One try at some addresses, all at once. Each of them ends in `settled` or in `failed`."""

    path: str
    body: Callable[[str], bytes]
    token: str
    deadline: float
    settled: dict[Address, str]
    failed: dict[str, str]

    def at_all(self, addresses: Iterable[Address]) -> None:
        threads = [threading.Thread(target=self._at, args=(a,), name=f"check-in {a}", daemon=True) for a in addresses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _at(self, address: Address) -> None:
        try:
            status, text = self._send(address)
        except DialError as error:
            self.failed[str(address)] = str(error)
            return
        if status < 300:
            self.settled[address] = ""
        elif status in _FINAL:
            self.settled[address] = f"{status} {text}"
        else:
            self.failed[str(address)] = f"{status} {text}"

    def _send(self, address: Address) -> tuple[int, str]:
        left = max(0.1, self.deadline - time.monotonic())
        with connect([address], min(CONNECT_WITHIN, left))[1] as sock:
            sock.settimeout(min(ANSWER_WITHIN, left))
            body = self.body(sock.getsockname()[0])
            return exchange(sock, wire.form_request("POST", self.path, address.name, self.token, body))
