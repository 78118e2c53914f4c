"""Services that systemd runs: started for who needs them, stopped again if it was us who started them."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from debian import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SYSTEMD = Path("/run/systemd/system")
BOOT = Path("/proc/sys/kernel/random/boot_id")
# What systemctl says of a unit that nobody has started since, or that came to its end.
IDLE = {"inactive", "failed", "unknown"}
# A question is answered at once. To stop takes as long as a service gives to what runs in it: containers, 10 s each.
ANSWERS_WITHIN, STOPS_WITHIN = 5.0, 120.0
OUT_OF_TIME = 124


def here() -> bool:
    """Whether systemd runs this machine."""
    return SYSTEMD.exists()


def start(units: Sequence[str], note: Path, within: float) -> str:
    """Start the first of the units, the others come along. Returns why it is not up in time, or nothing.

    Those that were idle before are noted, for `stop`.
    """
    deadline = time.monotonic() + within
    idle = [unit for unit, state in _states(units).items() if state in IDLE]
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("\n".join([_boot(), *dict.fromkeys([*noted(note), *idle])]))
    done = _systemctl("start", units[0], within=max(0.0, deadline - time.monotonic()))
    return "" if done.returncode == 0 else _why(done)


def stop(note: Path, *, wait: bool = True) -> None:
    """Stop the units that `start` noted and that are not idle by now. Without `wait` only systemd is told to."""
    units = [unit for unit, state in _states(noted(note)).items() if state not in IDLE]
    if units:
        say(f"stopping what setup started: systemctl stop {' '.join(units)}")
        waiting, limit = ([], STOPS_WITHIN) if wait else (["--no-block"], ANSWERS_WITHIN)
        done = _systemctl("stop", *waiting, *units, within=limit)
        if done.returncode:
            say(f"that failed: {_why(done)}")
            return  # with the note: the next one to stop it may have more luck
    note.unlink(missing_ok=True)


def noted(note: Path) -> list[str]:
    """The units in a note of this boot. After another boot it is not us who started them, whatever runs by then."""
    lines = note.read_text().splitlines() if note.exists() else []
    return lines[1:] if lines[:1] == [_boot()] else []


def disable(units: Iterable[str], why: str) -> None:
    """Have no boot start these, and say so; nothing where none of them is enabled."""
    enabled = [unit for unit in units if _systemctl("is-enabled", unit).stdout.strip() == "enabled"]
    if enabled:
        say(f"{why}: systemctl disable {' '.join(enabled)}")
        done = _systemctl("disable", *enabled, within=STOPS_WITHIN)
        if done.returncode:
            say(f"that failed: {_why(done)}")


def _states(units: Sequence[str]) -> dict[str, str]:
    """A word for each unit; none where systemd does not answer."""
    if not units:
        return {}
    said = _systemctl("is-active", *units).stdout.split()
    return dict(zip(units, [*said, *[""] * len(units)], strict=False))


def _boot() -> str:
    return BOOT.read_text().strip()


def _systemctl(*arguments: str, within: float = ANSWERS_WITHIN) -> subprocess.CompletedProcess[str]:
    """How it ended; one that hangs is ended, and has said so."""
    command = ["systemctl", "--no-ask-password", *arguments]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within)
    except subprocess.TimeoutExpired:
        said = f"`{' '.join(command)}` did not end in {within:.0f} s"
        return subprocess.CompletedProcess(command, OUT_OF_TIME, "", said)


def _why(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
