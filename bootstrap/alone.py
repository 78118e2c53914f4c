"""A worker that looks, beside its sshd, whether its launcher is still there."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from mpiboot.bootstrap import absence
from mpiboot.bootstrap import exit as ending
from mpiboot.bootstrap.signals import DONE
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable


class NoLauncherError(UserError):
    """It never came, so there is nothing to work for."""

    exit_code = ending.OUT_OF_TIME


class Alone:
    """Looks in a thread, since a look-up may hang; sends DONE to this process once `_why` says that it should end."""

    def __init__(self, launcher: str, limit: float, log: Callable[[str], None]) -> None:
        self._launcher, self._log = launcher, log
        self._absence = absence.Absence(launcher, limit, time.monotonic())
        self._question = absence.question(launcher)
        self._why = ""
        threading.Thread(target=self._look, name="launcher", daemon=True).start()

    def why(self) -> str:
        """Why the worker ends; raises if that is a failure: a launcher that is gone is none."""
        if self._why and not self._absence.came:
            raise NoLauncherError(self._why)
        return self._why or "the launcher has done its work"

    def _look(self) -> None:
        while not self._why:
            came = self._absence.came
            self._why = self._absence.verdict(absence.look(self._question), time.monotonic())
            if self._absence.came and not came:
                self._log(f"the launcher {self._launcher} is there")
            if not self._why:
                time.sleep(absence.LOOK_EVERY if self._absence.came else absence.FIRST_LOOKS_EVERY)
        os.kill(os.getpid(), DONE)
