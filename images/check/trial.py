"""The trial of one profile: a launcher and a worker, ssh between them, four ranks, an allreduce."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mpiboot.images.check import causes, runtime, trial_files, worker
from mpiboot.images.check.cutoff import Cutoff
from mpiboot.images.check.outcome import Answer, Finding, Status, Trial, fault, finding, not_checked, ok
from mpiboot.images.check.profiles import run_as, shown_user
from mpiboot.images.check.runtime import OUR_FILES
from mpiboot.images.check.sandbox import ContainerSpec
from mpiboot.images.check.subject import Result, run
from mpiboot.images.engine_errors import is_about_the_engine, reason
from mpiboot.job.mpi import identify

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Lock

    from docker.models.containers import Container

    from mpiboot.images.check.image import Image
    from mpiboot.images.check.sandbox import Sandbox
    from mpiboot.images.check.trial_files import Role
    from mpiboot.images.contract import Profile
    from mpiboot.job.mpi import Installed
    from mpiboot.job.plan.ssh_material import SshMaterial

RANKS = 4
SLOTS = 2
# Sum over i < 1000 of i * (1 + 2 + 3 + 4): allreduce.py.
EXPECTED_SUM = 4995000

# The launcher runs what the checker sends; it ends by itself if the checker was killed and could not end it.
SLEEP = ["/bin/sh", "-c", "exec sleep 3600"]
# State 0A is LISTEN; 127.0.0.11 is the engine's own name server, which lives in every container.
UNTIL_LISTENING = "until cat /proc/net/tcp* | grep -v ' 0B00007F:' | grep -q ' 0A '; do sleep 0.1; done"
LONGEST = 300  # characters that a report quotes from a program
# The sleep: Open MPI 5 loses a rank that ends before mpirun notes its start; mpirun then waits forever (2 of 100
# runs on a busy machine, none of 180 with it).
PRINT_HOST = "sh -c 'read -r host < /proc/sys/kernel/hostname; echo mpiboot-rank $host; sleep 0.3'"


@dataclass(frozen=True)
class Setting:
    """The input of one trial. A job mounts the keys in `key_directory`; for root they must be private."""

    image: Image
    profile: Profile
    any_uid: int
    as_root: bool
    key_directory: str
    keys: SshMaterial
    # Ranks that wait for each other spin. Those of three trials at once starve each other on a small machine.
    allreduce_lock: Lock


class TrialRun:
    """Runs one trial, and keeps its containers and the output of failed steps."""

    def __init__(self, setting: Setting, sandbox: Sandbox, say: Callable[[str], None]) -> None:
        self._setting = setting
        self._sandbox = sandbox
        self._say = say
        self.cutoff = Cutoff(sandbox)
        self._evidence: list[str] = []
        self._containers: dict[Role, Container] = {}
        self._mpi: Installed | None = None

    def run(self) -> Trial:
        """Run every step in order, until a step fails that a job needs."""
        steps: list[Finding] = []
        for point_id, step in (
            ("live-worker", self._start),
            ("live-ssh", self._log_in),
            ("live-path", self._look_for_programs),
            ("live-ranks", self._count_ranks),
            ("live-allreduce", self._sum),
        ):
            self._say(point_id.removeprefix("live-"))
            answer = step()
            if self.cutoff.why and answer.status is not Status.OK:
                answer = fault(self.cutoff.why)
            steps.append(finding(point_id, answer))
            if answer.status is Status.FAULT and steps[-1].point.needed_by:
                break
        setting = self._setting
        failed = any(step.is_fault for step in steps)
        trial = Trial(
            profile=setting.profile,
            user=shown_user(setting.profile, setting.image, setting.any_uid),
            steps=tuple(steps),
            causes=causes.explain("\n".join(self._evidence)) if failed else (),
        )
        self._say("works" if trial.works else "fails")
        return trial

    def _start(self) -> Answer:
        from docker.errors import APIError

        setting = self._setting
        try:
            self._launch("worker", worker.entrypoint(setting.image, setting.key_directory))
            self._launch("launcher", SLEEP)
        except APIError as error:
            if is_about_the_engine(error):
                raise
            return self._failed(reason(error))
        listening = run(self._containers["worker"], UNTIL_LISTENING)
        return ok(worker.description(setting.image)) if listening.code == 0 else self._failed("")

    def _launch(self, role: Role, entrypoint: list[str] | None) -> None:
        setting = self._setting
        profile = setting.profile.word
        run_as_user = run_as(setting.profile, setting.any_uid)
        hosts = [self._sandbox.host(f"{profile}-{role}") for role in ("launcher", "worker")]
        container = self._sandbox.create(
            ContainerSpec(
                name=f"{profile}-{role}",
                image=setting.image.id,
                entrypoint=entrypoint,
                user=run_as_user.user,
                files={
                    setting.key_directory: trial_files.keys(role, setting.keys, as_root=setting.as_root),
                    OUR_FILES: trial_files.files(setting.key_directory, hosts, SLOTS),
                },
                environment=trial_files.environment(role, setting.key_directory),
                options=run_as_user.options,
            )
        )
        self._containers[role] = container
        self.cutoff.watch(container)
        self._sandbox.start(container)

    def _log_in(self) -> Answer:
        result = self._over_ssh("echo mpiboot-login")
        if result.code == 0 and "mpiboot-login" in result.out:
            return ok("the launcher logged in; the worker showed the job's host key")
        return self._failed(result.one_line)

    def _look_for_programs(self) -> Answer:
        mpi = self._installed_mpi()
        if mpi is None:
            return not_checked("mpirun does not print which MPI it is")
        programs = ("mpirun", *mpi.daemons)
        result = self._over_ssh(f"for name in {' '.join(programs)}; do command -v $name || echo missing: $name; done")
        missing = re.findall(r"missing: (\S+)", result.out)
        return self._failed(f"not in PATH: {', '.join(missing)}") if missing else ok(", ".join(programs))

    def _count_ranks(self) -> Answer:
        mpi = self._installed_mpi()
        if mpi is None:
            return self._failed(self._in_launcher("mpirun --version").one_line)
        result = self._in_launcher(f"{runtime.command(mpi.runtime, RANKS)} {PRINT_HOST}")
        counted = Counter(re.findall(r"mpiboot-rank (\S+)", result.out))
        if result.code == 0 and sorted(counted.values()) == [SLOTS] * (RANKS // SLOTS):
            return ok(f"{mpi}: {RANKS} ranks, {SLOTS} on each of {len(counted)} hosts")
        where = ", ".join(f"{count} on {host.rpartition('-')[2]}" for host, count in counted.items()) or "no ranks"
        return self._failed(f"{where}; {result.one_line}" if result.code else f"{where}; expected {SLOTS} on each")

    def _sum(self) -> Answer:
        mpi = self._installed_mpi()
        assert mpi is not None  # _count_ranks would have failed
        python = self._in_launcher("command -v python3 || command -v python").out
        if not python:
            return not_checked("the image has no Python for an allreduce; the ranks started")
        library = self._in_launcher(f"{python} {trial_files.ALLREDUCE} --which")
        if library.out == "none":
            return not_checked("the image has neither mpi4py nor libmpi.so for an allreduce; the ranks started")
        with self._setting.allreduce_lock:
            result = self._in_launcher(f"{runtime.command(mpi.runtime, RANKS)} {python} {trial_files.ALLREDUCE}")
        sums = re.findall(rf"mpiboot-sum rank=(\d+) size={RANKS} sum=(\d+)", result.out)
        if result.code == 0 and sorted(sums) == [(str(rank), str(EXPECTED_SUM)) for rank in range(RANKS)]:
            return ok(f"{EXPECTED_SUM} on all {RANKS} ranks, by {library.out}")
        return self._failed(result.one_line or library.one_line)

    def _installed_mpi(self) -> Installed | None:
        if self._mpi is None:
            self._mpi = identify(self._in_launcher("mpirun --version").out)
        return self._mpi

    def _in_launcher(self, command: str) -> Result:
        return run(self._containers["launcher"], command)

    def _over_ssh(self, command: str) -> Result:
        name = cast("str", self._containers["worker"].name)
        return self._in_launcher(f"ssh -F {trial_files.SSH_CONFIG} {name} {shlex.quote(command)}")

    def _failed(self, output: str) -> Answer:
        """A fault with a line of the programs' output; the worker's log counts too."""
        log = _log_of(self._containers.get("worker"))
        self._evidence += [output, log]
        lines = [*output.splitlines(), *log.splitlines()[::-1]]
        first = lines[0] if lines else "it ended without output"
        explained = next((line for line in lines if causes.explain(line)), first)
        return fault(explained.strip()[:LONGEST])


def _log_of(container: Container | None) -> str:
    from docker.errors import APIError

    try:
        return container.logs(tail=30).decode(errors="replace") if container else ""
    except APIError:
        return ""  # the time limit removed it
