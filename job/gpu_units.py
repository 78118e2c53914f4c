"""How v1alpha1 spread processing units (GPUs or CPUs) over workers."""

from __future__ import annotations

DEFAULT_PER_NODE = 8


def spread(total: int, per_node: int) -> tuple[int, int] | None:
    """Workers and units of each: one worker with all of them, or full ones only. None: it does not come out even."""
    if total < per_node:
        return 1, total
    return None if total % per_node else (total // per_node, per_node)


def uneven(total: int, per_node: int) -> str:
    """Why a number cannot be spread, with both numbers."""
    lower = total // per_node * per_node
    return (
        f"{total} units cannot be spread over nodes of {per_node} each: take fewer than {per_node}, or a multiple of it"
        f" such as {lower} or {lower + per_node}"
    )
