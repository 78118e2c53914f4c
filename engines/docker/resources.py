"""A container's resource limits as an engine sets them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.quantity import number, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

GPU = "nvidia.com/gpu"
# Docker refuses less: "minimum memory limit allowed is 6MB".
LEAST_MEMORY = 6 * 2**20


@dataclass(frozen=True)
class Limits:
    """None: no limit."""

    nano_cpus: int | None = None
    memory: int | None = None
    gpus: int = 0


def limits(container: Mapping[str, Any], machine_cpus: int | None, ignored: list[str]) -> Limits:
    """The limits of a container. Requests have no effect: only a scheduler uses them."""
    given = (container.get("resources") or {}).get("limits") or {}
    cpus = memory = None
    gpus = 0
    for resource, quantity in given.items():
        where = f"resources.limits.{resource}"
        if resource == "cpu":
            cpus = int(number(quantity, where) * 10**9)
            if machine_cpus is not None and cpus > machine_cpus * 10**9:
                ignored.append(f"{where} {quantity} (the machine has {machine_cpus})")
                cpus = None
        elif resource == "memory":
            memory = max(whole(quantity, where), LEAST_MEMORY)
        elif resource == GPU:
            gpus = whole(quantity, where)
        elif number(quantity, where):
            ignored.append(where)
    return Limits(cpus or None, memory, gpus)
