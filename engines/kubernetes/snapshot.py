"""A job of a cluster and its pods at one moment, and what that means for its user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.kube.conditions import Conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.kube.api import Object
    from mpiboot.kube.pod_projection import PodView

OUT_OF_TIME = 124
EXIT_CODE = re.compile(r"\bexit code ([0-9]{1,3})\b")  # as the operator writes it into the status


@dataclass(frozen=True)
class Snapshot:
    """An MPIJob and its pods. `exit_codes`: of the main containers that have ended, by the name of the pod."""

    job: Object
    pods: tuple[PodView, ...]
    exit_codes: Mapping[str, int]

    @property
    def status(self) -> Object:
        found: Object = self.job.get("status") or {}
        return found

    @property
    def conditions(self) -> Conditions:
        return Conditions(tuple(self.status.get("conditions") or ()))

    def of(self, role: str) -> tuple[PodView, ...]:
        """The role's pods: workers by number, launchers in the order in which they were made."""
        pods = [pod for pod in self.pods if pod.role == role]
        by_number = role == "worker"
        return tuple(sorted(pods, key=lambda pod: (pod.index if by_number else 0, pod.meta.created, pod.name)))

    def state_line(self) -> str:
        """State, workers and reason in a line."""
        status = self.status
        shown = "workers" in status and not self.conditions.finished
        workers = f", {status['workers']} workers ready" if shown else ""
        reason = f": {status['reason']}" if status.get("reason") else ""
        return f"{status.get('state', 'Submitted')}{workers}{reason}"

    def exit_code(self) -> int:
        """Of the launcher's last attempt; 124 if the job ran out of time; 1 if unknown. The job has ended."""
        code = self.known_exit_code()
        return 1 if code is None else code

    def known_exit_code(self) -> int | None:
        """The same, None if unknown."""
        if self.conditions.true("Succeeded"):
            return 0
        if (self.conditions.get("Failed") or {}).get("reason") == "DeadlineExceeded":
            return OUT_OF_TIME
        codes = [self.exit_codes[pod.name] for pod in self.of("launcher") if pod.name in self.exit_codes]
        # The Job controller deletes the pod of a launcher that failed too often. The operator has kept its exit code.
        named = EXIT_CODE.search(self.status.get("reason") or "")
        code = codes[-1] if codes else int(named[1]) if named else None
        return 1 if code == 0 else code
