"""Finds causes by logging in: which workers refuse logins, which programs are missing, whose host key an sshd has."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.run import access, cleanup, mpirun
from mpiboot.bootstrap.wait.threads import Threads
from mpiboot.job import mpi
from mpiboot.ssh.client import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.bootstrap.hosts import Endpoint
    from mpiboot.bootstrap.launcher import Attempt
    from mpiboot.bootstrap.process.signals import Signals
    from mpiboot.bootstrap.run.access import Ports
    from mpiboot.bootstrap.run.mpirun import Program
    from mpiboot.bootstrap.run.rundir import RunDir
    from mpiboot.bootstrap.wait.loop import Login
    from mpiboot.bootstrap.wait.worker_table import Worker, WorkerTable
    from mpiboot.ssh.client import Client
    from mpiboot.ssh.failure import Failure

_MAY_TAKE = 4.0
_AT_MOST = 32


class Leftovers(NamedTuple):
    """The workers that ssh was called for, and what finds out there whether they can run the command's programs."""

    contacted: Mapping[str, Worker]
    programs: tuple[Program, ...]
    script: str


def leftovers(attempt: Attempt, run: RunDir, table: WorkerTable) -> Leftovers:
    """Where the attempt may have left something."""
    programs: tuple[Program, ...] = ()
    with suppress(OSError):  # the current directory was removed
        if attempt.words[0].rpartition("/")[2] in mpi.starters():
            programs = mpirun.programs_of(attempt.words, os.getcwd())
    script = mpirun.check_script(programs, attempt.environ.get("PATH", "")) if programs else ""
    return Leftovers(contacted(run, table), programs, script)


def contacted(run: RunDir, table: WorkerTable) -> dict[str, Worker]:
    """The workers that ssh was called for."""
    names = set(access.contacted(run))
    return {worker.name: worker for worker in table.workers.values() if not names.isdisjoint(_names(worker))}


def after_failure(
    attempt: Attempt, run: RunDir, client: Client, table: WorkerTable, ports: Ports, signals: Signals
) -> list[str]:
    """End the rest of the job on the workers. Returns messages about programs and workers that may be the cause."""
    workers, programs, script = leftovers(attempt, run, table)
    if workers:
        launched = cleanup.Launched(run.ssh_config, client.launch)
        codes = cleanup.end_on(workers, launched, script, attempt.environ, signals)
    elif script:  # all ranks are on this host
        codes = cleanup.run_all({"the launcher": ["/bin/sh", "-c", script]}, attempt.environ, signals, _MAY_TAKE)
    else:
        return []
    messages = missing_programs(programs, codes)
    not_clean = (None, cleanup.SSH_FAILED, cleanup.LEFT)
    unreached = [worker for name, worker in workers.items() if codes.get(name, 0) in not_clean]
    return [*messages, not_ended(unreached, client, ports, len(workers))] if unreached else messages


def _names(worker: Worker) -> tuple[str, ...]:
    """The names by which an mpirun may call this worker."""
    return worker.name, worker.name.partition(".")[0], worker.endpoint.address if worker.endpoint else ""


def missing_programs(wanted: Sequence[Program], codes: Mapping[str, int | None]) -> list[str]:
    """A message for each program that a host cannot run."""
    hosts: dict[tuple[Program, str], list[str]] = {}
    for name, code in codes.items():
        failure = mpirun.failed_check(wanted, code) if code is not None else None
        if failure:
            hosts.setdefault(failure, []).append(name)
    return [_missing(program, why, names) for (program, why), names in hosts.items()]


def _missing(program: Program, why: str, hosts: Sequence[str]) -> str:
    where = hosts[0] if len(hosts) == 1 else f"{hosts[0]} and {len(hosts) - 1} more"
    if why == "is not executable":
        return f"the program {program.name} {why} on {where}; run chmod +x on it"
    if why == "is a directory":
        return f"{program.name} {why} on {where}; name a program in this directory"
    looked = "PATH" if "/" not in program.name else program.directory
    searched = "" if program.name.startswith("/") else f" (looked for in {looked})"
    return (
        f"the program {program.name} {why} on {where}{searched}; "
        "copy it into the image, mount the directory it is in, or name it by its whole path there"
    )


def not_ended(hosts: Sequence[Worker], client: Client, ports: Ports, contacted: int) -> str:
    """The workers on which processes of the job may still run, with the error of a login where there is one."""
    known = reasons(hosts[:_AT_MOST], login_with(client, ports, 3.0)) if client.identity else {}
    lines = [f"no login to {len(hosts)} of {contacted} workers, so processes of the job may still run there:"]
    lines += [f"  {line}" for line in known.values()]
    others = [worker.name for worker in hosts if worker.name not in known]
    if others:
        lines.append(f"  no answer within {cleanup.limit(contacted):.0f} s: {', '.join(others)}")
    return "\n".join(lines)


def reasons(hosts: Sequence[Worker], login: Login) -> dict[str, str]:
    """Log in to all of them at once. Returns a line, by name, for each login that fails in time."""
    threads: Threads[tuple[Worker, Failure | None]] = Threads("login", 8)
    for worker in hosts:
        threads.submit(partial(_try, login, worker))
    messages: dict[str, str] = {}
    deadline = time.monotonic() + _MAY_TAKE
    done = 0
    while done < len(hosts) and time.monotonic() < deadline:
        threads.wait(deadline - time.monotonic())
        for worker, failure in threads.results():
            done += 1
            if failure is not None:
                assert worker.endpoint
                messages[worker.name] = f"{worker.name} at {worker.endpoint.address}  {failure}"
    return {worker.name: messages[worker.name] for worker in hosts if worker.name in messages}


def login_with(client: Client, ports: Ports, within: float) -> Login:
    """Logs in like ssh, but by paramiko, which says what went wrong."""
    known = _known_hosts(client)

    def login(name: str, endpoint: Endpoint) -> Failure | None:
        from mpiboot.ssh.login import Account, log_in

        effective = ports.effective(name)
        account = Account(client.user or endpoint.user or effective.user, client.identity, known)
        return log_in(name, endpoint.address, endpoint.port or effective.port or DEFAULT_PORT, account, within)

    return login


def key_check_with(client: Client, within: float) -> Login | None:
    """Checks a host's key and nothing else. None if any key will do."""
    if not (client.verify and client.known_hosts):
        return None
    known = _known_hosts(client)

    def check(name: str, endpoint: Endpoint) -> Failure | None:
        from mpiboot.ssh.failure import Kind
        from mpiboot.ssh.login import Account, log_in

        failure = log_in(name, endpoint.address, endpoint.port or DEFAULT_PORT, Account("", "", known), within)
        return failure if failure and failure.kind is Kind.HOST_KEY else None

    return check


def _known_hosts(client: Client) -> str:
    """Read before the logins begin: at its end, the launcher removes the file and does not wait for their threads."""
    if not (client.verify and client.known_hosts):
        return ""
    with open(client.known_hosts, encoding="utf-8") as file:
        return file.read()


def _try(login: Login, host: Worker) -> tuple[Worker, Failure | None]:
    assert host.endpoint
    return host, login(host.name, host.endpoint)
