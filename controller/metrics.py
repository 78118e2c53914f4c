"""The operator's metrics, under the names that dashboards of the peers know, in Prometheus' text format."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Metrics:
    """Counters and gauges of this process. Jobs are counted once, when their status says so for the first time."""

    created: int = 0
    successful: int = 0
    failed: int = 0
    leader: bool = False
    reconciles: int = 0
    reconcile_errors: int = 0
    reconcile_seconds: float = 0.0
    queued: int = 0
    info: dict[str, tuple[str, str]] = field(default_factory=dict)  # job's key -> launcher, namespace

    @contextmanager
    def reconcile(self) -> Iterator[None]:
        """Count a look at a job, and its failure."""
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
        add("mpiboot_operator_reconciles_total", "counter", "Times that a job was looked at", ("", self.reconciles))
        add("mpiboot_operator_reconcile_errors_total", "counter", "Times that this failed", ("", self.reconcile_errors))
        add("mpiboot_operator_reconcile_seconds_total", "counter", "Seconds spent on it", ("", self.reconcile_seconds))
        add("mpiboot_operator_queue_length", "gauge", "Jobs that wait or are being looked at", ("", self.queued))
        return "\n".join(lines) + "\n"
