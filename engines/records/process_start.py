"""When a process started. The kernel uses process numbers again, so a process is known by its number and its start."""

from __future__ import annotations

from pathlib import Path


def start_of(pid: int) -> str:
    """When a process started, as a text that no other process of this machine has had; empty if there is none."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
    state, ticks = after_name[0], after_name[19]
    return "" if state == "Z" else f"{boot}:{ticks}"
