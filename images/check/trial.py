"""One profile, tried: a launcher and a worker, ssh between them, four ranks, an allreduce."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mpiboot.images.check import causes, material, runtime, worker
from mpiboot.images.check.cutoff import Cutoff
from mpiboot.images.check.outcome import Answer, Finding, Status, Trial, fault, finding, not_checked, ok
from mpiboot.images.check.profile import run_as, shown_user
from mpiboot.images.check.runtime import OUR_FILES
from mpiboot.images.check.sandbox import Wish, is_engines_own, words_of
from mpiboot.images.check.subject import Result, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Lock

    from docker.models.containers import Container

    from mpiboot.images.check.image import Image
    from mpiboot.images.check.material import Role
    from mpiboot.images.check.sandbox import Sandbox
    from mpiboot.images.contract import Profile
    from mpiboot.job.material import SshMaterial

RANKS = 4
SLOTS = 2
# Sum over i < 1000 of i * (1 + 2 + 3 + 4): allreduce.py.
EXPECTED_SUM = 4995000

# The launcher waits for what it is told; it ends by itself if the checker was killed and could not end it.
SLEEP = ["/bin/sh", "-c", "exec sleep 3600"]
# State 0A is LISTEN; 127.0.0.11 is the engine's own name server, which lives in every container.
UNTIL_LISTENING = "until cat /proc/net/tcp* | grep -v ' 0B00007F:' | grep -q ' 0A '; do sleep 0.1; done"
LONGEST = 300  # of what is quoted from a program
# The sleep: Open MPI 5 loses a rank that ends before its start was noted, and then mpirun waits for ever (2 of 100
# runs on a busy machine, none of 180 with it).
SAY_HOST = "sh -c 'read -r host < /proc/sys/kernel/hostname; echo mpiboot-rank $host; sleep 0.3'"


@dataclass(frozen=True)
class Setting:
    """What one trial is given. `key_directory` is where a job would mount the keys; uid 0 wants them private."""

    image: Image
    profile: Profile
    any_uid: int
    as_root: bool
    key_directory: str
    keys: SshMaterial
    # Ranks that wait for each other spin. Those of three trials at once starve each other on a small machine.
    turn: Lock


class Attempt:
    """The containers of one trial, and what was learnt so far."""

    def __init__(self, setting: Setting, sandbox: Sandbox, say: Callable[[str], None]) -> None:
        self._setting = setting
        self._sandbox = sandbox
        self._say = say
        self.cutoff = Cutoff(sandbox)
        self._evidence: list[str] = []
        self._containers: dict[Role, Container] = {}
        self._mpi: runtime.Runtime | None = None

    def run(self) -> Trial:
        """Every step in order, until one fails that a job needs."""
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
            if is_engines_own(error):
                raise
            return self._failed(words_of(error))
        listening = run(self._containers["worker"], UNTIL_LISTENING)
        return ok(worker.described(setting.image)) if listening.code == 0 else self._failed("")

    def _launch(self, role: Role, entrypoint: list[str] | None) -> None:
        setting = self._setting
        profile = setting.profile.word
        who = run_as(setting.profile, setting.any_uid)
        hosts = [self._sandbox.host(f"{profile}-{role}") for role in ("launcher", "worker")]
        container = self._sandbox.create(
            Wish(
                name=f"{profile}-{role}",
                image=setting.image.id,
                entrypoint=entrypoint,
                user=who.user,
                files={
                    setting.key_directory: material.keys(role, setting.keys, as_root=setting.as_root),
                    OUR_FILES: material.files(setting.key_directory, hosts, SLOTS),
                },
                environment=material.environment(role, setting.key_directory),
                options=who.options,
            )
        )
        self._containers[role] = container
        self.cutoff.watch(container)
        self._sandbox.start(container)

    def _log_in(self) -> Answer:
        there = self._over_ssh("echo mpiboot-login")
        if there.code == 0 and "mpiboot-login" in there.out:
            return ok("logged in; the worker showed the job's host key")
        return self._failed(there.words)

    def _look_for_programs(self) -> Answer:
        mpi = self._runtime()
        if mpi is None:
            return not_checked("mpirun does not say which MPI it is")
        programs = ("mpirun", *mpi.daemons)
        there = self._over_ssh(f"for name in {' '.join(programs)}; do command -v $name || echo missing: $name; done")
        missing = re.findall(r"missing: (\S+)", there.out)
        return self._failed(f"not in PATH: {', '.join(missing)}") if missing else ok(", ".join(programs))

    def _count_ranks(self) -> Answer:
        mpi = self._runtime()
        if mpi is None:
            return self._failed(self._in_launcher("mpirun --version").words)
        there = self._in_launcher(f"{mpi.command(RANKS)} {SAY_HOST}")
        counted = Counter(re.findall(r"mpiboot-rank (\S+)", there.out))
        if there.code == 0 and sorted(counted.values()) == [SLOTS] * (RANKS // SLOTS):
            return ok(f"{mpi}: {RANKS} ranks, {SLOTS} on each of {len(counted)} hosts")
        where = ", ".join(f"{count} on {host.rpartition('-')[2]}" for host, count in counted.items()) or "no ranks"
        return self._failed(f"{where}; {there.words}" if there.code else f"{where}; expected {SLOTS} on each")

    def _sum(self) -> Answer:
        mpi = self._runtime()
        assert mpi is not None  # _count_ranks would have failed
        python = self._in_launcher("command -v python3 || command -v python").out
        if not python:
            return not_checked("the image has no Python to run one with; the ranks were counted")
        way = self._in_launcher(f"{python} {material.ALLREDUCE} --which")
        if way.out == "none":
            return not_checked("neither mpi4py nor libmpi.so is there to run one with; the ranks were counted")
        with self._setting.turn:
            there = self._in_launcher(f"{mpi.command(RANKS)} {python} {material.ALLREDUCE}")
        sums = re.findall(rf"mpiboot-sum rank=(\d+) size={RANKS} sum=(\d+)", there.out)
        if there.code == 0 and sorted(sums) == [(str(rank), str(EXPECTED_SUM)) for rank in range(RANKS)]:
            return ok(f"{EXPECTED_SUM} on all {RANKS} ranks, by {way.out}")
        return self._failed(there.words or way.words)

    def _runtime(self) -> runtime.Runtime | None:
        if self._mpi is None:
            self._mpi = runtime.parse(self._in_launcher("mpirun --version").out)
        return self._mpi

    def _in_launcher(self, command: str) -> Result:
        return run(self._containers["launcher"], command)

    def _over_ssh(self, command: str) -> Result:
        name = cast("str", self._containers["worker"].name)
        return self._in_launcher(f"ssh -F {material.SSH_CONFIG} {name} {shlex.quote(command)}")

    def _failed(self, said: str) -> Answer:
        """A fault in the programs' own words; the worker's log is evidence too."""
        log = _log_of(self._containers.get("worker"))
        self._evidence += [said, log]
        lines = [*said.splitlines(), *log.splitlines()[::-1]]
        telling = next((line for line in lines if causes.explain(line)), lines[0] if lines else "it ended silently")
        return fault(telling.strip()[:LONGEST])


def _log_of(container: Container | None) -> str:
    from docker.errors import APIError

    try:
        return container.logs(tail=30).decode(errors="replace") if container else ""
    except APIError:
        return ""  # removed, because time was over
