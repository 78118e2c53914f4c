"""What the user reads of a job's state while it runs on a cluster: each state and each cause once."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.kubernetes.namespace_jobs import NoJobError
from mpiboot.job.errors import UserError
from mpiboot.kube.api_error import ApiError, UnreachableError
from mpiboot.kube.pull_errors import CANNOT

if TYPE_CHECKING:
    from mpiboot.engines.kubernetes.namespace_jobs import JobId, NamespaceJobs
    from mpiboot.engines.kubernetes.snapshot import Snapshot
    from mpiboot.engines.output import Output

PULL_WITHIN = 60.0  # seconds of tries to pull an image: by then a kubelet has tried three times


class StateNotes:
    """`verbose`: with the container runtime's own words."""

    def __init__(self, jobs: NamespaceJobs, output: Output, *, verbose: bool) -> None:
        self._jobs, self._output, self._verbose = jobs, output, verbose
        self._last = ""
        self._causes: set[str] = set()
        self._pulling_since: float | None = None

    async def update(self, job: JobId, seen: Snapshot) -> None:
        """Print what is new. Raises UserError when an image could not be pulled for long."""
        line = seen.state_line()
        launcher = next((pod.why for pod in seen.of(LAUNCHER) if not pod.started and not pod.gated), "")
        if launcher and not seen.status.get("reason"):
            line += f": launcher: {launcher}"
        # The causes of two pods may take turns.
        if line != self._last and line not in self._causes:
            self._output.note(line)
            if CANNOT in line:
                self._causes.add(line)
                await self._tell_pull_errors(job)
        self._last = line
        self._give_up(seen)

    def _give_up(self, seen: Snapshot) -> None:
        reasons = [pod.why for pod in seen.of(LAUNCHER) if not pod.started]
        reasons += [] if seen.conditions.finished else [str(seen.status.get("reason") or "")]
        cause = next((reason for reason in reasons if CANNOT in reason), "")
        if not cause:
            self._pulling_since = None
            return
        now = time.monotonic()
        self._pulling_since = self._pulling_since or now
        if now - self._pulling_since > PULL_WITHIN:
            raise UserError(f"{cause}; mpiboot ends the job, as this did not change for {PULL_WITHIN:.0f} s")

    async def _tell_pull_errors(self, job: JobId) -> None:
        if self._verbose:
            with suppress(ApiError, UnreachableError, NoJobError):
                for text in await self._jobs.pull_errors(job):
                    self._output.note(text)
