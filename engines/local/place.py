"""A job on this machine, from nothing to a running launcher."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.bootstrap import reaper
from mpiboot.engines import marks, planned
from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.local import ports, state, tools
from mpiboot.engines.local.layout import HOSTS, Layout, layout
from mpiboot.engines.local.process import Process
from mpiboot.engines.place import CancelledError
from mpiboot.job.errors import UserError
from mpiboot.job.pods import main_container

if TYPE_CHECKING:
    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.local.layout import Program
    from mpiboot.engines.marks import Marks
    from mpiboot.engines.output import Output
    from mpiboot.job.model import Job

ENDING_MAY_TAKE = 10.0
# A rank that finds these believes to be part of another job.
NOT_PASSED_ON = ("MPIBOOT_", "PMIX_", "PMI_", "OMPI_COMM_", "PRTE_", "SSH_")


@dataclass
class LocalPlace:
    """One run of one job as processes of this machine."""

    job: Job
    inbox: Inbox[Event]
    output: Output
    marks: Marks
    digest: str = ""
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _programs: dict[str, Program] = field(default_factory=dict)
    _processes: dict[str, Process] = field(default_factory=dict)
    _scratch: str = ""
    _state: Path | None = None
    _record: state.Record | None = None

    def __post_init__(self) -> None:
        # Processes whose guard was killed become our children, so that the removal finds them.
        reaper.adopt_orphans()
        self._lifeline, self._held = os.pipe()

    def bring_up(self) -> None:
        tools.check()
        # Named in the record before it exists: whatever happens, somebody knows what to remove.
        self._scratch = f"{tempfile.gettempdir()}/mpiboot-{secrets.token_hex(6)}"
        self._enter()
        Path(self._scratch).mkdir(mode=0o700)
        planned_here = self._lay_out()
        self._write(planned_here)
        self.marks.mark("created", "job")
        for program in planned_here.programs:
            self._programs[program.who] = program
        for who in self._programs:
            self._start(who)

    def cancel(self) -> None:
        self._cancelled.set()

    def start_again(self, who: str) -> None:
        self._start(who)

    def lose(self, who: str) -> None:
        """Nothing to do: the launcher notices at once that nobody listens at its address."""

    def resize(self, workers: int) -> None:
        raise UserError(f"processes of this machine cannot become {workers} workers while they run")

    def signal(self, who: str, signum: int) -> None:
        if process := self._processes.get(who):
            process.signal(signum)

    def remove(self) -> None:
        self.cancel()
        os.close(self._held)  # tells every guard
        deadline = time.monotonic() + ENDING_MAY_TAKE
        for process in self._processes.values():
            if not process.gone_within(deadline - time.monotonic()):
                process.signal(signal.SIGKILL)
                process.gone_within(1.0)
        os.close(self._lifeline)
        self._sweep()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self._state:
            state.remove(self._state, self._record)

    # -- the steps of bring_up, in their order ------------------------------------------------------------------------

    def _enter(self) -> None:
        me = os.getpid()
        container = main_container(self.job.launcher.template, self.job.main_container)
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        self._record = state.Record(
            self.job.name, self.job.namespace, me, state.start_of(me), time.time(), self.job.workers, self.digest,
            " ".join(str(word) for word in words), self._scratch,
        )  # fmt: skip
        self._state = state.enter(self._record)

    def _lay_out(self) -> Layout:
        plan = planned.plan_without_images(self.job)
        found = layout(plan, self._scratch, ports.endpoints(self.job.workers), [*tools.again(), "mpiboot"])
        named = sorted(image for image in found.images if image and image != planned.THIS_MACHINE)
        if named:
            self.output.note(f"the image {' and '.join(named)} is not used: the job runs with this machine's programs")
        planned.tell(self.output, plan, found.unmet, "the local engine")
        return found

    def _write(self, planned_here: Layout) -> None:
        for path, file in planned_here.files.items():
            target = Path(self._scratch, path)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_bytes(file.data)
            # Of this user alone, whatever a pod of any user would need.
            target.chmod(0o700 if file.mode & 0o111 else 0o600)
        hosts = Path(self._scratch, HOSTS)
        with suppress(OSError):
            hosts.write_text(Path("/etc/hosts").read_text("utf-8") + hosts.read_text("utf-8"), "utf-8")
        hosts.chmod(0o644)
        for program in planned_here.programs:
            Path(self._scratch, "tmp", program.who).mkdir(mode=0o700, parents=True)

    def _start(self, who: str) -> None:
        if self._cancelled.is_set():
            raise CancelledError
        assert self._state
        program = self._programs[who]
        cwd = program.cwd if program.cwd and Path(program.cwd).is_dir() else str(Path.cwd())
        self._processes[who] = Process(
            program, self._environment(program), cwd, self._lifeline, self._scratch,
            self._state / state.LOGS, self.output, self.inbox,
        )  # fmt: skip
        self.marks.mark("started", who)

    def _environment(self, program: Program) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
        # Each has a place of its own for what runtimes keep in files named by the host, which is the same for all.
        own = str(Path(self._scratch, "tmp", program.who))
        env |= {"TMPDIR": own, **program.env}
        env["PATH"] = tools.path()
        # All hosts of the job are this one, so all traffic stays on it, also where there is no other interface.
        env.setdefault("OMPI_MCA_btl_tcp_if_include", "lo")
        if program.who != LAUNCHER:
            # The memory that ranks of a host share is such a file too: with one for two workers, ranks crashed now and
            # then. Not for the launcher: what it has in its environment, all ranks get.
            env |= {"OMPI_MCA_btl_sm_backing_directory": own}
        if os.getuid() == 0:
            env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if program.who == LAUNCHER and self.marks.wanted:
            env |= marks.ASK
        return env

    def _sweep(self) -> None:
        """Kill what lost its guard. Nothing of ours should be left: this is for what somebody killed on purpose."""
        me = os.getpid()
        while left := reaper.descendants(me):
            for pid in left:
                reaper.send(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)
