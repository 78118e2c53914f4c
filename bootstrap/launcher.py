"""The launcher, in order of time: data in, keys, hostfile, wait, environment, command, clean-up, data out."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import exit_codes, files
from mpiboot.bootstrap.hosts import Entry
from mpiboot.bootstrap.process.signals import Signals
from mpiboot.bootstrap.process.spawn import Output
from mpiboot.bootstrap.run import access, environment, hostfile, mpirun, placement, rundir
from mpiboot.bootstrap.wait import wait as waiting
from mpiboot.job import mpi
from mpiboot.job.errors import UserError
from mpiboot.ssh.server import ATTEMPT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.run.command import Outcome
    from mpiboot.bootstrap.run.rundir import RunDir
    from mpiboot.bootstrap.wait.loop import Loop
    from mpiboot.bootstrap.wait.wait import Mark
    from mpiboot.bootstrap.wait.worker_table import WorkerTable
    from mpiboot.job.mpi import Installed, Runtime
    from mpiboot.ssh.client import Client

    Log = Callable[[str], None]

HOROVODRUN = "horovodrun"
# How long `mpiboot hosts` probes the workers where no launch keeps the list.
HOSTS_WITHIN = 1.0
# How long to try to report a failed attempt: the operator may be restarting.
REPORT_MAY_TAKE = 120.0
LONGEST_REPORT = 500  # characters


class Context(NamedTuple):
    """What every step of a launch needs."""

    config: BootConfig
    environ: Mapping[str, str]
    run: RunDir
    signals: Signals
    mark: Mark
    log: Log


class Ready(NamedTuple):
    """The result of the wait: how to reach the workers, and all lines of the hostfile under names that work."""

    loop: Loop
    client: Client
    ports: access.Ports
    entries: tuple[Entry, ...]
    mpi: Installed | None  # None: the command's mpirun, if it has one, is not in the table

    @property
    def runtime(self) -> Runtime:
        return self.mpi.runtime if self.mpi else mpi.DEFAULT


class Attempt(NamedTuple):
    """One run of the command. `final`: why another one would not help; empty if it may."""

    code: int
    last_line: str
    seconds: float
    final: str
    words: Sequence[str]
    environ: Mapping[str, str]


def launch(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Waits for the workers, runs the command, ends what it left behind. Returns the launcher's exit code."""
    if not config.command:
        raise UserError("no command to run; write it after the options: mpiboot launch [OPTIONS] -- mpirun ./program")
    signals, run = Signals(), rundir.take(environ)
    context = Context(config, environ, run, signals, _marks(config, "launcher"), log)
    try:
        _fetch_data(context)
        ready = _wait(context)
        try:
            code = _store_data(context, _run(context, ready))
            if config.give:
                _give(context, ready)
            if config.end_workers:
                _end_workers(context, ready)
            return code
        finally:
            ready.loop.close()
    finally:
        signals.close()
        rundir.leave(run)


def wait(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Waits for the workers. Returns 0 when they are ready."""
    signals, run = Signals(), rundir.fresh()
    try:
        _wait(Context(config, environ, run, signals, _marks(config, "wait"), log)).loop.close()
    finally:
        signals.close()
        rundir.leave(run)
    return 0


def hosts(config: BootConfig, environ: Mapping[str, str], log: Log) -> str:
    """The workers that are ready, as HOST:SLOTS: the list of a running launch, else what a short probe finds."""
    text = rundir.live_list(environ)
    if text is None:
        run = rundir.fresh()
        try:
            client = access.anonymous(config)
            entries = hostfile.read(config.hostfile, optional=config.hostfile_is_default)
            loop = _start_loop(config, entries, run, client, access.Ports(run, client, environ), log)
            waiting.look_around(loop, HOSTS_WITHIN)
            text = hostfile.render([Entry(worker.name, worker.slots) for worker in loop.table.ready()], mpi.COLONS)
            loop.close()
        finally:
            rundir.leave(run)
    return text


def _fetch_data(context: Context) -> None:
    data = context.config.data
    if data.download:
        from mpiboot.bootstrap.data import move

        move.fetch(data.download, data.keys, context.environ, context.signals)


def _wait(context: Context) -> Ready:
    """Every step before the command can start. `mpirun --version` and `ssh -G` run during the wait."""
    config, environ, run = context.config, context.environ, context.run
    program = mpirun.path_of(config.command, environ.get("PATH", "")) if config.command else ""
    version = Output([program, "--version"], environ) if program else None
    needs_keys = config.command or config.probe == "all"
    client = access.prepare(config, run) if needs_keys else access.anonymous(config)
    entries = hostfile.read(config.hostfile, optional=config.hostfile_is_default)
    if config.size:
        from mpiboot.bootstrap.elastic import discovery

        discovery.demand_possible(config.size, entries, context.log)
    ports = access.Ports(run, client, environ)
    loop = _start_loop(config, entries, run, client, ports, context.log)
    try:
        waiting.until_ready(loop, config, context.signals, context.mark, context.log)
    except BaseException:
        loop.close()
        raise
    installed = mpi.identify(version.text()) if version else None
    return Ready(loop, client, ports, hostfile.with_own_name(entries, socket.gethostname()), installed)


def _start_loop(
    config: BootConfig, entries: tuple[Entry, ...], run: RunDir, client: Client, ports: access.Ports, log: Log
) -> Loop:
    login = None
    if config.probe == "all" and client.identity:
        from mpiboot.bootstrap.run.diagnosis import login_with

        login = login_with(client, ports, within=10.0)
    loop = waiting.loop_for(config, entries, ports, login, log)
    access.publish(run, client, loop.table.workers.values())
    return loop


def _run(context: Context, ready: Ready) -> int:
    """Runs the command, and again if it fails, as often as --restarts allows. Returns its last exit code."""
    attempt = _run_command(context, ready, 1)
    if context.config.restarts and attempt.code:
        from mpiboot.bootstrap.run.attempts import Attempts, Ended

        attempts = Attempts(context.config.restarts, context.config.final_codes)
        while attempt.code:
            verdict = attempts.ended(Ended(attempt.code, attempt.last_line, attempt.seconds, attempt.final))
            if not verdict.again:
                return _clean_up(context, ready, attempt, verdict.text)
            context.log(verdict.text)
            _report_attempt(context, ready, attempts.number - 1, verdict.text)
            missing = _make_ready_again(context, ready, attempt, verdict.pause)
            if missing:
                return _report_causes(context, attempt, attempt.last_line, missing)
            attempt = _run_command(context, ready, attempts.number)
        context.log(f"attempt {attempts.number} of {attempts.most} succeeded")
    elif attempt.code:
        return _clean_up(context, ready, attempt, attempt.last_line)
    return attempt.code


def _run_command(context: Context, ready: Ready, number: int) -> Attempt:
    from mpiboot.bootstrap.run.command import Command
    from mpiboot.bootstrap.run.supervise import Supervision

    config, run, table = context.config, context.run, ready.loop.table
    usable = _usable(ready.entries, table)
    client = ready.client._replace(attempt=number)
    access.publish(run, client, table.ready())
    for form in mpi.hostfile_forms():
        files.write(run.hostfile(form), hostfile.render(usable, form))
    if usable and run.job_hostfile:
        _write_job_hostfile(run.job_hostfile, hostfile.render(usable, mpi.SLOTS), context.log)
    if config.command[0].endswith(HOROVODRUN):
        _demand_own_hosts(context, usable)
    if config.receive and number == 1:
        _receive(context, ready)
    setting = _setting(context, ready, usable)
    given = {**context.environ, ATTEMPT_VARIABLE: str(number)}
    environ = environment.build(given, setting, config.forward)
    words: Sequence[str] = mpirun.with_streams(config.command, environ, ready.mpi, os.getpid())
    if config.size:
        words, environ = _prepare_elastic(context, table, environ, setting.interface)
    slots = placement.slots_of(usable, socket.gethostname())
    live, ready.loop.probes = None, config.elastic
    if config.elastic:
        from mpiboot.bootstrap.elastic.live_hosts import LiveHosts
        from mpiboot.bootstrap.run.diagnosis import key_check_with

        live = LiveHosts(table, run, client, context.log)
        # Checked only now: the start would wait for it. The next probe checks the keys of the first workers.
        ready.loop.key_check = key_check_with(ready.client, within=5.0)
    supervision = Supervision(config, table, run, slots, context.log, live, ready.ports.of)
    context.mark("exec")
    began = time.monotonic()
    command = Command(words, environ, ready.loop, context.signals)
    outcome = command.run(lambda now: supervision.check(command, now))
    supervision.close()
    context.mark("exit", code=outcome.code)
    if not supervision.warned:
        outcome = _check_placement(context, ready, slots, outcome)
    outcome = _check_workers(context, ready, outcome)
    last_line = outcome.cause or exit_codes.of_command(config.command, outcome.code, outcome.signal)
    final = "a signal asked the launcher to end" if outcome.asked else ""
    if outcome.final:
        final = "a restart would not change that"
    return Attempt(outcome.code, last_line, time.monotonic() - began, final, words, environ)


def _receive(context: Context, ready: Ready) -> None:
    """Wait for the caller's working directory, and unpack it on every host."""
    from mpiboot.bootstrap.workdir import hand_on

    expected = hand_on.Expected(context.config.receive, context.config.receive_timeout)
    hosts = [worker.name for worker in ready.loop.table.ready()]
    hand_on.bring(expected, hosts, context.run.ssh_config, context.environ, context.signals, context.log)
    context.mark("directory")


def _give(context: Context, ready: Ready) -> None:
    """Wait until the caller has fetched what the job wrote."""
    from mpiboot.bootstrap.workdir import results

    config, hosts = context.config, [worker.name for worker in ready.loop.table.ready()]
    results.offer(
        config.receive,
        config.give,
        hosts,
        context.run.ssh_config,
        context.environ,
        context.signals,
        config.receive_timeout,
        context.log,
    )


def _usable(entries: tuple[Entry, ...], table: WorkerTable) -> list[Entry]:
    """The workers that are ready, and the launcher itself if it has a line. An elastic job may have further workers."""
    own = socket.gethostname()
    ready = {worker.name: worker for worker in table.ready()}
    known = [entry for entry in entries if entry.name == own or entry.name in ready]
    listed = {entry.name for entry in known}
    return known + [Entry(worker.name, worker.slots) for worker in ready.values() if worker.name not in listed]


def _write_job_hostfile(path: str, text: str, log: Log) -> None:
    try:
        files.write(path, text, 0o644)
    except OSError as error:
        log(f"cannot write {path}: {error.strerror}; deepspeed finds no hosts without -H $MPIBOOT_HOSTFILE")


def _setting(context: Context, ready: Ready, usable: list[Entry]) -> environment.Setting:
    run, first, with_hosts = context.run, next(iter(ready.loop.table.ready()), None), bool(usable)
    slots = {entry.slots for entry in usable}
    return environment.Setting(
        ssh_config=run.ssh_config,
        shim=access.shim(run, context.environ.get("PATH", ""), rundir.IMAGE_SHIM),
        hostfiles={form.name: run.hostfile(form) for form in mpi.hostfile_forms()} if with_hosts else {},
        hostfile=run.hostfile(ready.runtime.hostfile) if with_hosts else "",
        given_hostfile=context.config.hostfile,
        live=run.live if context.config.elastic else "",
        interface=environment.interface_towards(first.endpoint.address) if first and first.endpoint else "",
        first_address=_first_address(usable, ready.loop.table),
        ranks_a_host=str(slots.pop()) if len(slots) == 1 else "",
        root=os.geteuid() == 0,
        sets_forward_list=not (ready.mpi and ready.mpi.major in ready.mpi.runtime.no_list_beside_x),
    )


def _first_address(usable: list[Entry], table: WorkerTable) -> str:
    """The address at which the other hosts reach the first one, where mpirun starts rank 0."""
    first = next((entry.name for entry in usable if entry.slots), "")
    if first in table.workers:
        endpoint = table.workers[first].endpoint
        return endpoint.address if endpoint else first
    towards = next((worker.endpoint.address for worker in table.ready() if worker.endpoint), "")
    return (towards and environment.own_address(towards)) or ("127.0.0.1" if first else "")


def _demand_own_hosts(context: Context, usable: list[Entry]) -> None:
    """Refuse a horovodrun for hosts that neither the job nor DNS has: it would only say that ssh to them fails."""
    from mpiboot.bootstrap.elastic import horovod
    from mpiboot.bootstrap.hosts import short_name
    from mpiboot.bootstrap.wait.resolver import look_up

    names = [each.name for each in usable]
    known = {"localhost", socket.gethostname(), *names, *map(short_name, names)}
    for host in horovod.foreign_hosts(context.config.command, known):
        if not look_up(host, ()).address:
            ranks, file = sum(each.slots for each in usable), context.run.job_hostfile or context.config.hostfile
            raise UserError(
                f"horovodrun -H names {host!r}, which is not a host of this job; leave -H out and write: "
                f"horovodrun -np {ranks} --hostfile {file} ..."
            )


def _prepare_elastic(
    context: Context, table: WorkerTable, environ: dict[str, str], interface: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command of an elastic job and its environment, with the settings by which it outlives lost workers."""
    from mpiboot.bootstrap.elastic import discovery, horovod, live_hosts

    live_hosts.publish_live(context.run, table)
    words = horovod.completed(context.config.command, next((worker.slots for worker in table.ready()), 1), interface)
    environ = horovod.with_defaults(environ)
    discovery.check(words, environ, context.signals)
    if horovod.is_program(words[0]) and table.ready():
        discovery.demand_horovod(words, table.ready()[0].name, context.run.ssh_config, environ, context.signals)
    return words, environ


def _check_placement(context: Context, ready: Ready, slots: placement.Slots, outcome: Outcome) -> Outcome:
    """Checks an mpirun that ended before the supervision could see its ranks."""
    contacts, fills_slots = placement.contacts(context.run.contacted), ready.runtime.fills_slots
    wrong = placement.at_the_end(context.config.command, slots, contacts, outcome.code, fills_slots=fills_slots)
    if not wrong:
        return outcome
    if context.config.strict_placement:
        cause = f"{wrong}; --strict-placement makes this a failure"
        return outcome._replace(code=exit_codes.ENDED_BY_US, cause=cause, final=True)
    context.log(f"WARNING: {wrong}")
    return outcome


def _check_workers(context: Context, ready: Ready, outcome: Outcome) -> Outcome:
    """Checks a success of an mpirun that may exit with 0 though a worker was lost."""
    hides = ready.mpi and ready.mpi.major in ready.mpi.runtime.hides_lost_hosts
    if outcome.code or context.config.elastic or not hides:
        return outcome
    from mpiboot.bootstrap.run import diagnosis, life_signs

    workers = diagnosis.contacted(context.run, ready.loop.table).values()
    lost = life_signs.absent(workers, ready.ports.of, within=5.0)
    if not lost:
        return outcome
    cause = f"worker {lost[0].name} was lost while the job ran, though mpirun exited with code 0"
    return outcome._replace(code=exit_codes.ENDED_BY_US, cause=cause)


def _clean_up(context: Context, ready: Ready, attempt: Attempt, last_line: str) -> int:
    """After the last failure: logs it, ends the job on the workers, and logs what was wrong with them."""
    from mpiboot.bootstrap.process import termination
    from mpiboot.bootstrap.run.diagnosis import after_failure

    context.log(last_line)
    termination.write(last_line)
    table = ready.loop.table
    causes = after_failure(attempt, context.run, ready.client, table, ready.ports, context.signals)
    return _report_causes(context, attempt, last_line, causes)


def _report_attempt(context: Context, ready: Ready, number: int, text: str) -> None:
    """Report the failed attempt to the operator, for status and events. The next attempt does not wait for that."""
    checkin = context.config.checkin
    if checkin is None:
        return
    import threading

    from mpiboot.checkin.client import Attempt as Failed
    from mpiboot.checkin.client import post_attempt

    failed = Failed(ready.client.launch, number, text[:LONGEST_REPORT])
    deadline = time.monotonic() + REPORT_MAY_TAKE
    arguments = (checkin.urls, checkin.job, failed, checkin.token, deadline)
    threading.Thread(target=post_attempt, args=arguments, name="attempt", daemon=True).start()


def _report_causes(context: Context, attempt: Attempt, last_line: str, causes: Sequence[str]) -> int:
    from mpiboot.bootstrap.process import termination

    for cause in causes:
        context.log(cause)
    if causes:
        termination.write("\n".join([last_line, *causes]))
    return attempt.code


def _make_ready_again(context: Context, ready: Ready, attempt: Attempt, pause: float) -> list[str]:
    """Ends what the attempt left on the workers, and waits until all of them are ready for the next one.

    Returns messages about programs that a worker cannot run: then no further attempt can succeed.
    """
    from mpiboot.bootstrap.run import diagnosis
    from mpiboot.bootstrap.run.cleaning import Cleaning
    from mpiboot.bootstrap.run.cleanup import Launched

    loop, config = ready.loop, context.config
    left = diagnosis.leftovers(attempt, context.run, loop.table)
    launched = Launched(context.run.ssh_config, ready.client.launch)
    cleaning = Cleaning(
        left,
        loop.table,
        launched,
        attempt.environ,
        publish=lambda: access.publish(context.run, ready.client, loop.table.workers.values()),
        not_before=time.monotonic() + pause,
        limit=config.init_timeout,
    )
    loop.table.begin_again(time.monotonic())
    loop.probes = True
    try:
        waiting.until_ready(loop, config, context.signals, context.mark, context.log, cleaning)
    finally:
        cleaning.close()
    return diagnosis.missing_programs(left.programs, cleaning.codes)


def _store_data(context: Context, code: int) -> int:
    """Stores the data even if the command failed. Returns the command's exit code, or that of a failed upload."""
    data = context.config.data
    if not data.upload:
        return code
    from mpiboot.bootstrap.data import move

    try:
        move.store(data.upload, data.keys, context.environ, context.signals)
    except UserError as error:
        from mpiboot.bootstrap.process import termination

        context.log(str(error))
        if code == 0:
            termination.write(str(error))
        return code or error.exit_code
    return code


def _end_workers(context: Context, ready: Ready) -> None:
    from mpiboot.bootstrap.run import cleanup

    names = [worker.name for worker in ready.loop.table.ready()]
    cleanup.end_workers(names, context.run.ssh_config, context.environ, context.signals)


def _marks(config: BootConfig, who: str) -> Mark:
    """The function that marks events for a timeline. Without MPIBOOT_EVENTS it does nothing."""
    if not config.events:
        return lambda event, **more: None  # noqa: ARG005 (the arguments have to be named so)
    from mpiboot.bootstrap.process.events import Events

    return Events(config.events, who).mark
