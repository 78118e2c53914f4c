"""systemd services: set-up starts those that it needs, and stops only those that it started."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from debian import log

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SYSTEMD = Path("/run/systemd/system")
BOOT = Path("/proc/sys/kernel/random/boot_id")
# What `systemctl is-active` prints for a unit that does not run.
IDLE = {"inactive", "failed", "unknown"}
# A query needs a moment. A stop takes as long as the service waits for what runs in it: containers, 10 s each.
ANSWERS_WITHIN, STOPS_WITHIN = 5.0, 120.0
OUT_OF_TIME = 124


def here() -> bool:
    """Whether systemd runs this machine."""
    return SYSTEMD.exists()


def start(units: Sequence[str], record: Path, within: float) -> str:
    """Start the first of the units, which starts the others. Returns an error if it does not run in time, else "".

    The file `record` keeps the units that were idle before, for `stop`.
    """
    deadline = time.monotonic() + within
    idle = [unit for unit, state in _states(units).items() if state in IDLE]
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("\n".join([_boot(), *dict.fromkeys([*recorded(record), *idle])]))
    done = _systemctl("start", units[0], within=max(0.0, deadline - time.monotonic()))
    return "" if done.returncode == 0 else _error(done)


def stop(record: Path, *, wait: bool = True) -> None:
    """Stop the units that `start` recorded and that still run. Without `wait` it does not wait for their end."""
    units = [unit for unit, state in _states(recorded(record)).items() if state not in IDLE]
    if units:
        log(f"stopping what setup started: systemctl stop {' '.join(units)}")
        waiting, limit = ([], STOPS_WITHIN) if wait else (["--no-block"], ANSWERS_WITHIN)
        done = _systemctl("stop", *waiting, *units, within=limit)
        if done.returncode:
            log(f"that failed: {_error(done)}")
            return  # the record stays, so that the next call can try again
    record.unlink(missing_ok=True)


def recorded(record: Path) -> list[str]:
    """The units in a record of this boot. After a reboot set-up did not start them, even if they run."""
    lines = record.read_text().splitlines() if record.exists() else []
    return lines[1:] if lines[:1] == [_boot()] else []


def disable(units: Iterable[str], why: str) -> None:
    """Disable the units that are enabled, so that no boot starts them, and print it."""
    enabled = [unit for unit in units if _systemctl("is-enabled", unit).stdout.strip() == "enabled"]
    if enabled:
        log(f"{why}: systemctl disable {' '.join(enabled)}")
        done = _systemctl("disable", *enabled, within=STOPS_WITHIN)
        if done.returncode:
            log(f"that failed: {_error(done)}")


def _states(units: Sequence[str]) -> dict[str, str]:
    """What `systemctl is-active` prints for each unit; empty if systemd does not answer."""
    if not units:
        return {}
    states = _systemctl("is-active", *units).stdout.split()
    return dict(zip(units, [*states, *[""] * len(units)], strict=False))


def _boot() -> str:
    return BOOT.read_text().strip()


def _systemctl(*arguments: str, within: float = ANSWERS_WITHIN) -> subprocess.CompletedProcess[str]:
    """The result of systemctl; after `within` seconds it is ended, with the exit code 124 and a message."""
    command = ["systemctl", "--no-ask-password", *arguments]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within)
    except subprocess.TimeoutExpired:
        error = f"`{' '.join(command)}` did not end within {within:.0f} s"
        return subprocess.CompletedProcess(command, OUT_OF_TIME, "", error)


def _error(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
