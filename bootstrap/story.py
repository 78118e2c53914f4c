"""The launcher's story, in the order in which it happens: addresses, readiness, hostfile, environment, command, end."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from mpiboot.bootstrap import access, environment, hostfile, private, rundir, runtime, spawn, waiting
from mpiboot.bootstrap import exit as ending
from mpiboot.bootstrap.events import Events
from mpiboot.bootstrap.signals import Signals
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.picture import Host
    from mpiboot.bootstrap.rundir import RunDir

    Log = Callable[[str], None]


def launch(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Waits for the workers, runs the command, cleans up; the exit code of it all."""
    if not config.command:
        raise UserError("nothing to run; say what: mpiboot launch [OPTIONS] -- mpirun -n 4 ./program")
    signals = Signals()
    run = rundir.take(environ)
    try:
        return _launch(config, environ, run, signals, log)
    finally:
        signals.close()
        if run.temporary:
            private.remove(run.path)


def _launch(config: BootConfig, environ: Mapping[str, str], run: RunDir, signals: Signals, log: Log) -> int:
    from mpiboot.bootstrap.launch import Command

    events = Events(config.events, "launcher")
    mpirun = runtime.program(config.command, environ.get("PATH", ""))
    version = spawn.Output([mpirun, "--version"], environ) if mpirun else None
    entries = waiting.read_entries(config)
    client = access.prepare(config, run)
    access.publish(run, client, ())
    watch = waiting.watch_for(config, entries, access.Ports(run, client, environ), None, log)
    try:
        waiting.until_ready(watch, config, signals, events, log)
        ready = watch.picture.ready()
        access.publish(run, client, ready)
        found = runtime.identify(version.text()) if version else runtime.Runtime("", "")
        own = hostfile.with_own_name(entries, socket.gethostname())
        names = {host.name for host in ready} | {entry.name for entry in own if entry.name == socket.gethostname()}
        usable = [entry for entry in own if entry.name in names]
        for dialect in ("openmpi", "hydra"):
            private.write(run.hostfile(dialect), hostfile.render(usable, dialect))
        setting = environment.Setting(
            ssh_config=run.ssh_config,
            shim=access.shim(run, environ.get("PATH", ""), rundir.IMAGE_SHIM),
            openmpi_hostfile=run.hostfile("openmpi"),
            hydra_hostfile=run.hostfile("hydra"),
            hostfile=run.hostfile(found.dialect),
            given_hostfile=config.hostfile,
            interface=_interface(ready),
            root=os.geteuid() == 0,
        )
        events.mark("exec")
        watch.trying = config.min_workers > 0
        command = Command(config.command, environment.build(environ, setting, config.forward), watch, signals)
        outcome = command.run(lambda _: float("inf"))
    finally:
        watch.close()
    events.mark("exit", code=outcome.code)
    last = outcome.cause or ending.of_command(config.command, outcome.code)
    if last:
        from mpiboot.bootstrap import termination

        log(last)
        termination.write(last)
    return outcome.code


def wait(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    """Waits for the workers; 0 when they are ready."""
    raise NotImplementedError


def hosts(config: BootConfig, environ: Mapping[str, str], log: Log) -> int:
    raise NotImplementedError


def _interface(ready: list[Host]) -> str:
    from mpiboot.bootstrap import interface

    place = ready[0].place if ready else None
    return interface.towards(place.address) if place else ""
