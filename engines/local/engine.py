"""A job as processes of this machine. `start` shows the steps from nothing to a running launcher."""

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

from mpiboot.bootstrap.process import reaper
from mpiboot.bootstrap.run import mpirun
from mpiboot.engines.engine import CancelledError
from mpiboot.engines.inbox import LAUNCHER
from mpiboot.engines.local import ports, state, tools
from mpiboot.engines.local.guarded_process import GuardedProcess
from mpiboot.engines.local.layout import HOSTS, Layout, layout
from mpiboot.engines.pods import local_plan
from mpiboot.engines.records.process_start import start_of
from mpiboot.engines.timeline.recorder import EVENTS_ON_STDERR
from mpiboot.job import mpi
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.local.layout import Program
    from mpiboot.engines.output import Output
    from mpiboot.engines.stdin import Stdin
    from mpiboot.engines.timeline.recorder import EventRecorder
    from mpiboot.job.model import Job

ENDING_MAY_TAKE = 10.0
# A rank that finds these variables would take itself for a part of another job.
NOT_PASSED_ON = ("MPIBOOT_", "PMIX_", "PMI_", "OMPI_COMM_", "PRTE_", "SSH_")


@dataclass
class LocalEngine:
    """One run of one job as processes of this machine."""

    job: Job
    inbox: Inbox[Event]
    output: Output
    recorder: EventRecorder
    stdin: Stdin | None = None
    run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _programs: dict[str, Program] = field(default_factory=dict)
    _processes: dict[str, GuardedProcess] = field(default_factory=dict)
    _scratch: str = ""
    _state: Path | None = None
    _record: state.Record | None = None

    def __post_init__(self) -> None:
        # Processes whose guard was killed become our children, so that the removal finds them.
        reaper.adopt_orphans()
        self._lifeline, self._lifeline_writer = os.pipe()

    def start(self) -> None:
        tools.check()
        # The record names it before it exists, so that `mpiboot delete` can always find it.
        self._scratch = f"{tempfile.gettempdir()}/mpiboot-{secrets.token_hex(6)}"
        self._enter()
        Path(self._scratch).mkdir(mode=0o700)
        layout_here = self._lay_out()
        self._write(layout_here)
        self.recorder.record("created", "job")
        for program in layout_here.programs:
            self._programs[program.name] = program
        for name in self._programs:
            self._start_process(name)

    def cancel(self) -> None:
        self._cancelled.set()

    def restart(self, process: str) -> None:
        self._start_process(process)

    def withdraw(self, worker: str) -> None:
        """Nothing to do: the launcher notices at once that no program listens at its address."""

    def scale(self, workers: int) -> None:
        raise UserError(f"processes of this machine cannot become {workers} workers while they run")

    def signal(self, process: str, number: int) -> None:
        if found := self._processes.get(process):
            found.signal(number)

    def remove(self) -> None:
        self.cancel()
        os.close(self._lifeline_writer)  # every guard then ends its program
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

    # -- the steps of start, in their order ------------------------------------------------------------------------

    def _enter(self) -> None:
        me = os.getpid()
        self._record = state.Record(
            self.job.name, me, start_of(me), time.time(), self.job.workers, self._scratch, self.run_id
        )
        self._state = state.enter(self._record)

    def _lay_out(self) -> Layout:
        plan = local_plan.plan_without_images(self.job)
        found = layout(plan, self._scratch, ports.endpoints(self.job.workers), [*tools.again(), "mpiboot"])
        named = sorted(image for image in found.images if image and image != local_plan.THIS_MACHINE)
        if named:
            self.output.note(f"the image {' and '.join(named)} is not used: the job runs with this machine's programs")
        local_plan.warn(self.output, plan, found.ignored, "the local engine")
        return found

    def _write(self, layout_here: Layout) -> None:
        for path, file in layout_here.files.items():
            target = Path(self._scratch, path)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_bytes(file.data)
            # For this user alone: pods of other users need more, but here all processes have one user.
            target.chmod(0o700 if file.mode & 0o111 else 0o600)
        hosts = Path(self._scratch, HOSTS)
        with suppress(OSError):
            hosts.write_text(Path("/etc/hosts").read_text("utf-8") + hosts.read_text("utf-8"), "utf-8")
        hosts.chmod(0o644)
        for program in layout_here.programs:
            Path(self._scratch, "tmp", program.name).mkdir(mode=0o700, parents=True)

    def _start_process(self, name: str) -> None:
        if self._cancelled.is_set():
            raise CancelledError
        program = self._programs[name]
        cwd = program.cwd if program.cwd and Path(program.cwd).is_dir() else str(Path.cwd())
        self._processes[name] = GuardedProcess(
            program, self._environment(program), cwd, self._lifeline, self._scratch,
            self.output, self.inbox, self.stdin if name == LAUNCHER else None,
        )  # fmt: skip
        self.recorder.record("started", name)

    def _environment(self, program: Program) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
        # A directory for each: runtimes name files after the host, and all processes have the same one.
        own = str(Path(self._scratch, "tmp", program.name))
        env |= {"TMPDIR": own, **program.env}
        env["PATH"] = tools.path()
        # All hosts of the job are this one, so all traffic stays on it, also where there is no other interface.
        env.setdefault("OMPI_MCA_btl_tcp_if_include", "lo")
        if program.name != LAUNCHER:
            # The memory that ranks of a host share is such a file too: with one for two workers ranks crashed at times.
            # Not for the launcher: all ranks get the variables of its environment.
            env |= {"OMPI_MCA_btl_sm_backing_directory": own}
        if os.getuid() == 0:
            env |= mpi.root_may_run()
        if program.name == LAUNCHER and self.recorder.wanted:
            env |= EVENTS_ON_STDERR
        if program.name == LAUNCHER and self.stdin:
            env |= {mpirun.STDIN_HERE: "1"}
        return env

    def _sweep(self) -> None:
        """Kill programs whose guard was killed. Otherwise none of ours is left here."""
        me = os.getpid()
        while left := reaper.descendants(me):
            for pid in left:
                reaper.send(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)
