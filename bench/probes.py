"""512 real sshds on loopback addresses, none checked in: the launcher's wait compared with bare banner reads."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench import _sshds
from bench._launch import CLOCK, directory, executed_at, launching, waits
from bench.harness import Row, in_turn

HOSTS, REPEATS = 512, 5
BANNERS = Path(__file__).with_name("_banners.py")


def measure() -> list[Row]:
    with directory() as path:
        job = _sshds.job(path / "job", HOSTS)
        with _sshds.running(job, HOSTS) as workers:
            everyone = "".join(worker.line for worker in workers)
            command = [sys.executable, str(BANNERS), str(_sshds.PORT), *(worker.address for worker in workers)]

            def ours() -> float:
                """From the addresses to the command's execution."""
                job.publish("")
                with launching(job, *CLOCK) as process:
                    waits(process)
                    begun = time.time()
                    job.publish(everyone)
                    return executed_at(process) - begun

            def bare() -> float:
                return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

            waited, read = in_turn(REPEATS, ours, bare)
    what = f"{HOSTS} addresses to command executed"
    return [Row(what, "s", waited, limit=1.3, beside=read, beside_what="bare banner reads")]
