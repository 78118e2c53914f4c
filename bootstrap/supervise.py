"""While the command runs: are its ranks where they should be, are its workers still there, has an elastic job grown?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.bootstrap import lost, sightings
from mpiboot.bootstrap.placement import Placement

if TYPE_CHECKING:
    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.launch import Command
    from mpiboot.bootstrap.members import Members
    from mpiboot.bootstrap.picture import Picture
    from mpiboot.bootstrap.placement import Slots
    from mpiboot.bootstrap.rundir import RunDir
    from mpiboot.bootstrap.story import Log
    from mpiboot.ssh.client import Client

# Most mpiruns come at once; a script may call one an hour later, and looking for it must cost nothing.
_LOOKS = ((5.0, 0.1), (60.0, 0.5), (float("inf"), 1.0))  # until this many seconds: every so often


class Supervision:
    """Called from the command's loop with the time; tells when it wants to be called again."""

    def __init__(
        self, config: BootConfig, picture: Picture, run: RunDir, client: Client, slots: Slots, log: Log
    ) -> None:
        self._config, self._picture, self._run, self._client, self._log = config, picture, run, client, log
        self._placement = Placement(slots) if slots.elsewhere else None
        self._began_with = lost.uids(picture)
        self._members: Members | None = None
        if config.elastic:
            from mpiboot.bootstrap.members import Members

            self._members = Members(config, picture, run, client, log)
        self._revision = -1 if config.elastic else picture.revision
        self._began: float | None = None
        self._look_at = 0.0
        self._lost, self._end_at = "", float("inf")
        self.warned = False

    def look(self, command: Command, now: float) -> float:
        if self._began is None:
            self._began = now
        if self._picture.revision != self._revision:
            self._revision = self._picture.revision
            self._workers_changed(now)
        if now >= self._end_at:
            command.end(self._lost)
            self._end_at = float("inf")
        if self._placement and now >= self._look_at:
            self._look_at = now + next(every for until, every in _LOOKS if now - self._began < until)
            self._look_at_ranks(command, now)
        return min(self._end_at, self._look_at if self._placement else float("inf"))

    def _workers_changed(self, now: float) -> None:
        if self._members:
            self._members.look()
            return
        cause = lost.first(self._picture, self._began_with)
        if cause and not self._lost:
            self._lost, self._end_at = cause, now + lost.MPIRUN_HAS
            self._log(f"{cause}; the command has {lost.MPIRUN_HAS:g} s to end by itself")

    def _look_at_ranks(self, command: Command, now: float) -> None:
        assert self._placement
        wrong = self._placement.judge(sightings.look(command.pid), sightings.contacts(self._run.contacted), now)
        if wrong and not self.warned:
            self.warned = True
            if self._config.strict_placement:
                command.end(f"{wrong}; ended, as --strict-placement asks")
            else:
                self._log(f"WARNING: {wrong}")
