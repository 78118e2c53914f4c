"""Waits until the workers' SSH listens, for launchers that cannot wait by themselves.

A program inside each worker waits: this process cannot reach the network of an engine on another machine, and sshd
counts a connection without a login as a failed one.
"""

from __future__ import annotations

import queue
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from docker.errors import APIError

from mpiboot.engines.engine import CancelledError
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker import APIClient

    from mpiboot.engines.docker.podspec import ContainerSpec
    from mpiboot.engines.docker.ready_probe import Ready

UNTIL = 'n=0; until "$@"; do n=$((n+1)); [ $n -gt {tries} ] && exit 100; sleep 0.1 2>/dev/null || sleep 1; done'
NOT_YET = 100
ONE_PROBE = 20.0  # seconds; an engine's answer that takes longer than a request's time limit is an error


class NotReadyError(UserError):
    """The SSH of some workers does not listen."""

    exit_code = 124


def wait_for_all(
    api: APIClient, workers: Mapping[str, ContainerSpec], limit: float, cancelled: threading.Event
) -> None:
    """Returns when every container is ready; `limit` is in seconds."""
    started = time.monotonic()
    answers: queue.SimpleQueue[str] = queue.SimpleQueue()
    for container, spec in workers.items():
        # No join: the removal of the containers ends these threads.
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
    except Exception as error:  # noqa: BLE001 (the caller waits for an answer)
        fault = str(error)
    answers.put(fault and f"{spec.name}: {fault}")


def _wait(api: APIClient, container: str, ready: Ready, deadline: float) -> str:
    """Why it is not ready; empty when it is."""
    while (left := deadline - time.monotonic()) > 0:
        script = UNTIL.format(tries=int(min(left, ONE_PROBE) * 10))
        try:
            probe = api.exec_create(container, ["sh", "-c", script, "sh", *ready.command])["Id"]
            printed = api.exec_start(probe).decode(errors="replace").strip()
            code = api.exec_inspect(probe)["ExitCode"]
        except APIError:  # no program can be started in it any more
            return "it ended before it was ready"
        if code == 0:
            return ""
        if code in {None, 137, 143}:
            return "it ended before it was ready"
        if code != NOT_YET:
            return f"its probe cannot run (exit code {code}): {printed}"
    return ready.what
