"""Run a job on a cluster as if it were here: its output is ours, and so is its exit code."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.controller.remote import Look, Remote

LOOK_EVERY = 0.5  # seconds
OUT_OF_TIME = 124


async def attend(remote: Remote, manifest: Mapping[str, Any], say: Callable[[str], None]) -> int:
    """Create the job, follow it to its end, delete it. The exit code is its launcher's."""
    name = manifest["metadata"]["name"]
    await remote.create(manifest)
    try:
        return await _follow(remote, name, say)
    finally:
        await remote.delete(name)


async def _follow(remote: Remote, name: str, say: Callable[[str], None]) -> int:
    said = ""
    printed: dict[str, asyncio.Task[None]] = {}
    while True:
        look = await remote.look(name)
        line = in_words(look)
        if line != said:
            said = line
            say(line)
        if look.status.get("state") == "Invalid":
            return 2
        for pod in look.of("launcher"):
            if pod.phase not in {"Pending", "Unknown"} and pod.name not in printed:
                printed[pod.name] = asyncio.create_task(_print(remote, pod.name))
        if look.conditions.finished:
            await asyncio.gather(*printed.values(), return_exceptions=True)
            return exit_code(look)
        await asyncio.sleep(LOOK_EVERY)


def in_words(look: Look) -> str:
    """State, workers and reason in a line."""
    status = look.status
    shown = "workers" in status and not look.conditions.finished
    workers = f", {status['workers']} workers ready" if shown else ""
    reason = f": {status['reason']}" if status.get("reason") else ""
    return f"{status.get('state', 'Submitted')}{workers}{reason}"


def exit_code(look: Look) -> int:
    """Of the launcher's last attempt; 124 if the job ran out of time."""
    if look.conditions.true("Succeeded"):
        return 0
    if (look.conditions.get("Failed") or {}).get("reason") == "DeadlineExceeded":
        return OUT_OF_TIME
    codes = [look.exit_codes[pod.name] for pod in look.of("launcher") if pod.name in look.exit_codes]
    return (codes[-1] if codes else 1) or 1


async def _print(remote: Remote, pod: str) -> None:
    try:
        async for chunk in remote.output(pod, follow=True):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    except UserError as error:
        print(f"mpiboot: {error}", file=sys.stderr)  # noqa: T201 (the log of a pod that is gone)
