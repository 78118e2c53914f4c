"""What logins tell: after a command failed, what is wrong with workers that let nobody in; and whose sshd it is."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from mpiboot.bootstrap import access, cleanup
from mpiboot.bootstrap.beside import Beside
from mpiboot.ssh.client import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.bootstrap.access import Ports
    from mpiboot.bootstrap.addresses import Place
    from mpiboot.bootstrap.host import Host
    from mpiboot.bootstrap.picture import Picture
    from mpiboot.bootstrap.readiness import Login
    from mpiboot.bootstrap.rundir import RunDir
    from mpiboot.bootstrap.signals import Signals
    from mpiboot.ssh.client import Client
    from mpiboot.ssh.failure import Failure

_MAY_TAKE = 4.0
_AT_MOST = 32


def after_failure(
    run: RunDir, client: Client, picture: Picture, ports: Ports, environ: Mapping[str, str], signals: Signals
) -> list[str]:
    """Ends the rest of the job on the workers; a line for each worker that could not be logged in to."""
    by_name = {host.name: host for host in picture.hosts.values()}
    by_name |= {host.name.partition(".")[0]: host for host in picture.hosts.values()}
    by_name |= {host.place.address: host for host in picture.hosts.values() if host.place}
    contacted = {by_name[name].name: by_name[name] for name in access.contacted(run) if name in by_name}
    launched = cleanup.Launched(run.ssh_config, client.launch)
    failed = cleanup.end_on(list(contacted), launched, environ, signals.wait)
    if not failed or not client.identity:
        return []
    return reasons([contacted[name] for name in failed[:_AT_MOST]], login_with(client, ports, 3.0))


def reasons(hosts: Sequence[Host], login: Login) -> list[str]:
    """Log in to all of them side by side; a line for each that fails, as far as that is known in time."""
    beside: Beside[tuple[Host, Failure | None]] = Beside("login", 8)
    for host in hosts:
        beside.submit(partial(_try, login, host))
    found: dict[str, str] = {}
    deadline = time.monotonic() + _MAY_TAKE
    done = 0
    while done < len(hosts) and time.monotonic() < deadline:
        beside.wait(deadline - time.monotonic())
        for host, failure in beside.results():
            done += 1
            if failure is not None:
                assert host.place
                found[host.name] = f"{host.name} at {host.place.address}  {failure}"
    return [found[host.name] for host in hosts if host.name in found]


def login_with(client: Client, ports: Ports, within: float) -> Login:
    """The login that ssh would do, by paramiko, which tells what went wrong."""

    def login(name: str, place: Place) -> Failure | None:
        from mpiboot.ssh.login import Account, log_in

        known = ""
        if client.verify and client.known_hosts:
            with open(client.known_hosts, encoding="utf-8") as file:
                known = file.read()
        effective = ports.effective(name)
        account = Account(client.user or place.user or effective.user, client.identity, known)
        return log_in(name, place.address, place.port or effective.port or DEFAULT_PORT, account, within)

    return login


def key_check_with(client: Client, within: float) -> Login | None:
    """A look at a host's key and no more; None where any key will do. What else may be wrong is for others to find."""
    if not (client.verify and client.known_hosts):
        return None
    with open(client.known_hosts, encoding="utf-8") as file:
        known = file.read()

    def look(name: str, place: Place) -> Failure | None:
        from mpiboot.ssh.failure import Kind
        from mpiboot.ssh.login import Account, log_in

        found = log_in(name, place.address, place.port or DEFAULT_PORT, Account("", "", known), within)
        return found if found and found.kind is Kind.HOST_KEY else None

    return look


def _try(login: Login, host: Host) -> tuple[Host, Failure | None]:
    assert host.place
    return host, login(host.name, host.place)
