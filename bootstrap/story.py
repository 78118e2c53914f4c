"""The launcher's story, in the order in which it happens: addresses, readiness, hostfile, environment, command, end."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import access, environment, hostfile, interface, placement, private, rundir, runtime, waiting
from mpiboot.bootstrap import exit as ending
from mpiboot.bootstrap.events import Events
from mpiboot.bootstrap.signals import Signals
from mpiboot.bootstrap.spawn import Output
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.hostfile import Entry
    from mpiboot.bootstrap.launch import Outcome
    from mpiboot.bootstrap.picture import Picture
    from mpiboot.bootstrap.readiness import Watch
    from mpiboot.bootstrap.rundir import RunDir
    from mpiboot.ssh.client import Client

    Log = Callable[[str], None]

# How long `mpiboot hosts` looks where no launch keeps the list.
HOSTS_WITHIN = 1.0


class Told(NamedTuple):
    """What every part of the story needs."""

    config: BootConfig
    environ: Mapping[str, str]
    run: RunDir
    signals: Signals
    events: Events
    log: Log


class Ready(NamedTuple):
    """The wait is over: how to reach the workers, and all of the hostfile's lines under names that work."""

    watch: Watch
    client: Client
    ports: access.Ports
    entries: tuple[Entry, ...]
    mpi: runtime.Runtime


def launch(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Waits for the workers, runs the command, ends what it left; the exit code of it all."""
    if not config.command:
        raise UserError("nothing to run; say what: mpiboot launch [OPTIONS] -- mpirun -n 4 ./program")
    signals, run = Signals(), rundir.take(environ)
    told = Told(config, environ, run, signals, Events(config.events, "launcher"), log)
    try:
        config.data.fetch(environ, signals)
        ready = _wait(told)
        try:
            code = _stored(told, _command(told, ready))
            if config.end_workers:
                _end_workers(told, ready)
            return code
        finally:
            ready.watch.close()
    finally:
        signals.close()
        rundir.leave(run)


def _stored(told: Told, code: int) -> int:
    """The exit code after the data is out. It goes out whatever the command did; the command's failure is the first."""
    try:
        told.config.data.store(told.environ, told.signals)
    except UserError as error:
        from mpiboot.bootstrap import termination

        told.log(str(error))
        if code == 0:
            termination.write(str(error))
        return code or error.exit_code
    return code


def _end_workers(told: Told, ready: Ready) -> None:
    from mpiboot.bootstrap import cleanup

    hosts = [host.name for host in ready.watch.picture.ready()]
    cleanup.end_workers(hosts, told.run.ssh_config, told.environ, told.signals.wait)


def wait(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Waits for the workers; 0 when they are ready."""
    signals, run = Signals(), rundir.fresh()
    try:
        _wait(Told(config, environ, run, signals, Events(config.events, "wait"), log)).watch.close()
    finally:
        signals.close()
        rundir.leave(run)
    return 0


def hosts(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Prints the workers that are ready: a running launch's list, or what a short look of our own finds."""
    text = rundir.live_list(environ)
    if text is None:
        run = rundir.fresh()
        try:
            _, watch = _start(config, environ, run, access.anonymous(config), log)
            waiting.look_around(watch, HOSTS_WITHIN)
            text = hostfile.render([hostfile.Entry(h.name, h.slots) for h in watch.picture.ready()], "hydra")
            watch.close()
        finally:
            rundir.leave(run)
    sys.stdout.write(text)
    return 0


def _start(
    config: BootConfig, environ: Mapping[str, str], run: RunDir, client: Client, log: Log
) -> tuple[access.Ports, Watch]:
    ports = access.Ports(run, client, environ)
    login = None
    if config.probe == "all" and client.identity:
        from mpiboot.bootstrap.diagnosis import login_with

        login = login_with(client, ports, within=10.0)
    watch = waiting.watch_for(config, waiting.read_entries(config), ports, login, log)
    access.publish(run, client, watch.picture.hosts.values())
    return ports, watch


def _wait(told: Told) -> Ready:
    """Everything up to the moment at which the command can start; what can run meanwhile does."""
    config, environ, run = told.config, told.environ, told.run
    mpirun = runtime.program(config.command, environ.get("PATH", "")) if config.command else ""
    version = Output([mpirun, "--version"], environ) if mpirun else None
    needs_keys = config.command or config.probe == "all"
    client = access.prepare(config, run) if needs_keys else access.anonymous(config)
    entries = waiting.read_entries(config)
    if config.size:
        from mpiboot.bootstrap import discovery

        discovery.demand_possible(config.size, entries, told.log)
    ports, watch = _start(config, environ, run, client, told.log)
    try:
        waiting.until_ready(watch, config, told.signals, told.events, told.log)
    except BaseException:
        watch.close()
        raise
    mpi = runtime.identify(version.text()) if version else runtime.UNKNOWN
    return Ready(watch, client, ports, hostfile.with_own_name(entries, socket.gethostname()), mpi)


def _command(told: Told, ready: Ready) -> int:
    from mpiboot.bootstrap.launch import Command
    from mpiboot.bootstrap.supervise import Supervision

    config, run, picture = told.config, told.run, ready.watch.picture
    usable = _usable(ready.entries, picture)
    access.publish(run, ready.client, picture.ready())
    private.write(run.hostfile("openmpi"), hostfile.render(usable, "openmpi"))
    private.write(run.hostfile("hydra"), hostfile.render(usable, "hydra"))
    setting = _setting(told, ready, usable)
    environ = environment.build(told.environ, setting, config.forward)
    words = config.command
    if config.size:
        words, environ = _made_elastic(told, picture, environ, setting.interface)
    slots = placement.slots_of(usable, socket.gethostname())
    supervision = Supervision(config, picture, run, ready.client, slots, told.log)
    ready.watch.trying = config.elastic
    if config.elastic:
        from mpiboot.bootstrap.diagnosis import key_check_with

        # Not before the start, which would wait for it; the first workers' keys are seen at the next look at them.
        ready.watch.key_check = key_check_with(ready.client, within=5.0)
    told.events.mark("exec")
    command = Command(words, environ, ready.watch, told.signals)
    outcome = command.run(lambda now: supervision.look(command, now))
    told.events.mark("exit", code=outcome.code)
    if not supervision.warned:
        outcome = _judged(told, ready, slots, outcome)
    return _finish(told, ready, environ, outcome)


def _made_elastic(
    told: Told, picture: Picture, environ: dict[str, str], interface: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command of an elastic job and its environment, with what it needs to go on when workers come and go."""
    from mpiboot.bootstrap import discovery, horovod, members

    members.publish_live(told.run, picture)
    words = horovod.completed(told.config.command, next((host.slots for host in picture.ready()), 1), interface)
    environ = horovod.with_defaults(environ)
    discovery.check(words, environ)
    if horovod.is_program(words[0]) and picture.ready():
        discovery.demand_horovod(words, picture.ready()[0].name, told.run.ssh_config, environ)
    return words, environ


def _judged(told: Told, ready: Ready, slots: placement.Slots, outcome: Outcome) -> Outcome:
    """An mpirun that was too quick to be watched is judged by what it left."""
    from mpiboot.bootstrap import sightings

    contacts, hydra = sightings.contacts(told.run.contacted), ready.mpi.dialect == "hydra"
    wrong = placement.at_the_end(told.config.command, slots, contacts, outcome.code, hydra=hydra)
    if not wrong:
        return outcome
    if told.config.strict_placement:
        return outcome._replace(code=ending.ENDED_BY_US, cause=f"{wrong}; --strict-placement makes this a failure")
    told.log(f"WARNING: {wrong}")
    return outcome


def _finish(told: Told, ready: Ready, environ: Mapping[str, str], outcome: Outcome) -> int:
    """The last words, and the end of the job on the workers. A success needs neither."""
    if outcome.code == 0:
        return 0
    from mpiboot.bootstrap import termination
    from mpiboot.bootstrap.diagnosis import after_failure

    last = outcome.cause or ending.of_command(told.config.command, outcome.code)
    told.log(last)
    termination.write(last)
    lines = after_failure(told.run, ready.client, ready.watch.picture, ready.ports, environ, told.signals)
    if lines:
        told.log("no login:\n  " + "\n  ".join(lines))
        termination.write("\n".join([last, *lines]))
    return outcome.code


def _usable(entries: tuple[Entry, ...], picture: Picture) -> list[Entry]:
    """The workers that are ready, and the launcher itself where it has a line; elastic jobs may have others, too."""
    own = socket.gethostname()
    ready = {host.name: host for host in picture.ready()}
    known = [entry for entry in entries if entry.name == own or entry.name in ready]
    listed = {entry.name for entry in known}
    return known + [hostfile.Entry(host.name, host.slots) for host in ready.values() if host.name not in listed]


def _setting(told: Told, ready: Ready, usable: list[Entry]) -> environment.Setting:
    run, first, with_hosts = told.run, next(iter(ready.watch.picture.ready()), None), bool(usable)
    slots = {entry.slots for entry in usable}
    return environment.Setting(
        ssh_config=run.ssh_config,
        shim=access.shim(run, told.environ.get("PATH", ""), rundir.IMAGE_SHIM),
        openmpi_hostfile=run.hostfile("openmpi") if with_hosts else "",
        hydra_hostfile=run.hostfile("hydra") if with_hosts else "",
        hostfile=run.hostfile(ready.mpi.dialect) if with_hosts else "",
        given_hostfile=told.config.hostfile,
        live=run.live if told.config.elastic else "",
        interface=interface.towards(first.place.address) if first and first.place else "",
        ranks_a_host=str(slots.pop()) if len(slots) == 1 else "",
        root=os.geteuid() == 0,
        list_beside_x=not (ready.mpi.family == "OpenMPI" and ready.mpi.version.startswith("4.")),
    )
