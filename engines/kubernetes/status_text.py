"""What `mpiboot status` prints of a job: how it stands, what is missing and why, and what happened when."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpiboot.engines.kubernetes.snapshot import Snapshot
    from mpiboot.kube.pod_projection import PodView

SHOWN = 20  # pods in trouble that are listed one by one


def status_text(look: Snapshot) -> str:
    return "\n".join([*_head(look), *_missing(look), *_timeline(look)])


def _head(look: Snapshot) -> Iterator[str]:
    meta = look.job["metadata"]
    yield f"{meta['namespace']}/{meta['name']}: {look.state_line()}"


def _missing(look: Snapshot) -> Iterator[str]:
    if look.conditions.finished:
        return
    troubled = [pod for pod in (*look.of("launcher"), *look.of("worker")) if _trouble(pod)]
    for pod in troubled[:SHOWN]:
        yield f"  {pod.name}  {pod.phase}: {_trouble(pod)}"
    if len(troubled) > SHOWN:
        yield f"  and {len(troubled) - SHOWN} more"


def _trouble(pod: PodView) -> str:
    if pod.gated:
        return "held back until all workers are ready"
    return pod.why or ("" if pod.ready or pod.ended or pod.role == "launcher" else "not ready yet")


def _timeline(look: Snapshot) -> Iterator[str]:
    happened = [(look.job["metadata"]["creationTimestamp"], "created")]
    ready = sorted(pod.ready_at for pod in look.of("worker") if pod.ready and pod.ready_at)
    if ready:
        happened += [(ready[0], "first worker ready"), (ready[-1], f"worker {len(ready)} ready")]
    for item in look.conditions.items:
        what = item["type"] if item["status"] == "True" else f"not {item['type']} any more"
        if item["type"] != "Created":
            happened.append((item.get("lastTransitionTime", ""), what))
    happened += [(pod.meta.created, f"{pod.name} created") for pod in look.of("launcher")]
    yield "timeline (UTC):"
    for when, what in sorted(happened):
        yield f"  {when.replace('T', ' ').removesuffix('Z')}  {what}"
