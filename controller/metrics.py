"""The operator's metrics under mpi-operator's names, in Prometheus' text format, and the HTTP server for them."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Metrics:
    """Counters and gauges of this process. A job counts when its status shows the state for the first time."""

    created: int = 0
    successful: int = 0
    failed: int = 0
    leader: bool = False
    reconciles: int = 0
    reconcile_errors: int = 0
    reconcile_seconds: float = 0.0
    queued: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)  # by kind
    info: dict[str, tuple[str, str]] = field(default_factory=dict)  # job's key -> launcher, namespace

    @contextmanager
    def reconcile(self) -> Iterator[None]:
        """Count one reconciliation of a job, and its failure."""
        began = time.monotonic()
        try:
            yield
        except Exception:
            self.reconcile_errors += 1
            raise
        finally:
            self.reconciles += 1
            self.reconcile_seconds += time.monotonic() - began

    def text(self) -> str:
        lines: list[str] = []

        def add(name: str, kind: str, help_text: str, *samples: tuple[str, float]) -> None:
            lines.append(f"# HELP {name} {help_text}")
            lines.append(f"# TYPE {name} {kind}")
            lines.extend(f"{name}{labels} {value:g}" for labels, value in samples)

        for what, count in (("created", self.created), ("successful", self.successful), ("failed", self.failed)):
            add(f"mpi_operator_jobs_{what}_total", "counter", f"Counts number of MPI jobs {what}", ("", count))
        info = [(f'{{launcher="{launcher}",namespace="{space}"}}', 1.0) for launcher, space in self.info.values()]
        add("mpi_operator_job_info", "gauge", "Information about MPIJob", *info)
        add("mpi_operator_is_leader", "gauge", "Is this client the leader of this mpi-operator client set?",
            ("", float(self.leader)))  # fmt: skip
        ours = "mpiboot_operator"
        add(f"{ours}_reconciles_total", "counter", "Reconciliations of jobs", ("", self.reconciles))
        add(f"{ours}_reconcile_errors_total", "counter", "Reconciliations that failed", ("", self.reconcile_errors))
        add(f"{ours}_reconcile_seconds_total", "counter", "Seconds of reconciling", ("", self.reconcile_seconds))
        add(f"{ours}_queue_length", "gauge", "Jobs that wait or are being reconciled", ("", self.queued))
        add(f"{ours}_unreadable_objects_total", "counter", "Objects that the operator skipped as unreadable",
            *((f'{{kind="{kind}"}}', count) for kind, count in sorted(self.unreadable.items())))  # fmt: skip
        return "\n".join(lines) + "\n"


# Prometheus' content type; text/plain alone lacks the version.
METRICS = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}


class Monitoring:
    """Serves /healthz, /readyz and /metrics. `unready` returns what is missing. Any answer means healthy."""

    def __init__(self, unready: Callable[[], str], metrics: Callable[[], str]) -> None:
        app = web.Application()
        app.router.add_get("/healthz", lambda _: _answer(""))
        app.router.add_get("/readyz", lambda _: _answer(unready()))
        app.router.add_get("/metrics", lambda _: _text(metrics()))
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, address: str, port: int) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port).start()

    async def close(self) -> None:
        await self._runner.cleanup()


async def _answer(trouble: str) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)


async def _text(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers=METRICS)
