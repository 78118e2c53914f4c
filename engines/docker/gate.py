"""Whether the workers' SSH answers, for launchers that cannot wait by themselves.

Looked up inside each worker: with an engine on another machine nothing else reaches its network, and a connection from
here would count as a failed login with sshd. One program in each worker waits there; nothing polls from outside.
"""

from __future__ import annotations

import queue
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from docker.errors import APIError

from mpiboot.engines.place import CancelledError
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker import APIClient

    from mpiboot.engines.docker.podspec import ContainerSpec
    from mpiboot.engines.docker.ready import Ready

UNTIL = 'n=0; until "$@"; do n=$((n+1)); [ $n -gt {tries} ] && exit 100; sleep 0.1 2>/dev/null || sleep 1; done'
NOT_YET = 100
ONE_LOOK = 20.0  # seconds; an engine's answer that takes longer than a request's time limit is an error


class NotReadyError(UserError):
    """Workers whose SSH does not answer."""

    exit_code = 124


def wait_for_all(
    api: APIClient, workers: Mapping[str, ContainerSpec], limit: float, cancelled: threading.Event
) -> None:
    """Returns when every container is ready."""
    started = time.monotonic()
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    for container, spec in workers.items():
        # Nobody joins these threads: a removal of the containers ends them.
        work = partial(_answer, answers, api, container, spec, started + limit)
        threading.Thread(target=work, name=f"gate of {spec.name}", daemon=True).start()
    faults = []
    for _ in workers:
        while True:
            if cancelled.is_set():
                raise CancelledError
            try:
                faults.append(answers.get(timeout=0.1))
                break
            except queue.Empty:
                continue
    if faults := [fault for fault in faults if fault]:
        elapsed = time.monotonic() - started
        head = f"{len(faults)} of {len(workers)} workers not ready after {elapsed:.1f} s (limit {limit:g} s)"
        raise NotReadyError("\n  ".join([head, *sorted(faults)]))


def _answer(
    answers: queue.SimpleQueue[str], api: APIClient, container: str, spec: ContainerSpec, deadline: float
) -> None:
    try:
        fault = _wait(api, container, spec.ready, deadline)
    except Exception as error:  # noqa: BLE001 (an answer is owed)
        fault = str(error)
    answers.put(fault and f"{spec.name}: {fault}")


def _wait(api: APIClient, container: str, ready: Ready, deadline: float) -> str:
    """What is wrong; empty when it listens."""
    while (left := deadline - time.monotonic()) > 0:
        script = UNTIL.format(tries=int(min(left, ONE_LOOK) * 10))
        try:
            look = api.exec_create(container, ["sh", "-c", script, "sh", *ready.command])["Id"]
            said = api.exec_start(look).decode(errors="replace").strip()
            code = api.exec_inspect(look)["ExitCode"]
        except APIError:  # nothing can be started in it any more
            return "it ended before it was ready"
        if code == 0:
            return ""
        if code in {None, 137, 143}:
            return "it ended before it was ready"
        if code != NOT_YET:
            return f"cannot be asked whether it is ready (exit code {code}): {said}"
    return ready.what
