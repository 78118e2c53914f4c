"""What happened to a job of a cluster and when, as its objects have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.kube.clock import seconds_of

if TYPE_CHECKING:
    from mpiboot.engines.kubernetes.snapshot import Snapshot


def timeline(look: Snapshot) -> tuple[tuple[float, str], ...]:
    """Times in seconds since 1970 and what happened then."""
    happened = [(look.job["metadata"]["creationTimestamp"], "created")]
    ready = sorted(pod.ready_at for pod in look.of("worker") if pod.ready and pod.ready_at)
    if ready:
        happened += [(ready[0], "first worker ready"), (ready[-1], f"worker {len(ready)} ready")]
    for item in look.conditions.items:
        what = item["type"] if item["status"] == "True" else f"not {item['type']} any more"
        if item["type"] != "Created":
            happened.append((item.get("lastTransitionTime", ""), what))
    happened += [(pod.meta.created, f"{pod.name} created") for pod in look.of("launcher")]
    return tuple((seconds_of(when), what) for when, what in sorted(happened) if when)
