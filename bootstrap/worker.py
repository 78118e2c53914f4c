"""`mpiboot worker`: an sshd for the launcher, as whoever this is, and the duties of process 1 while it runs."""

# sshd is started before anything is imported that it does not need: workers are what launchers wait for.
from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import keydir, listening, private, reaper, spawn
from mpiboot.bootstrap.signals import DONE, Signals
from mpiboot.job.errors import UserError
from mpiboot.job.keyfiles import AUTHORIZED_KEYS, HOST_KEY, PRIVATE
from mpiboot.ssh.server import SECRETS, WORKER_VARIABLE, Server, configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket

    from mpiboot.bootstrap.alone import Alone
    from mpiboot.bootstrap.config import WorkerConfig

# Long enough for ranks that write a last file, short enough for whoever waits for the pod to go.
ENDING_MAY_TAKE = 5.0
CHECKIN_MAY_TAKE = 600.0
_NEEDED = {6: "SETGID", 7: "SETUID", 18: "SYS_CHROOT"}  # capability number -> name


class Keys(NamedTuple):
    """Texts of the files or variables. No host key: sshd gets a fresh one."""

    authorized: str
    host: str | None


def run(config: WorkerConfig, environ: Mapping[str, str], log: Callable[[str], None]) -> int:
    """Serves until SIGTERM or SIGINT (128+N), until its launcher is gone (0), or until sshd ends by itself (its code).

    A worker that is told to end has not succeeded: of a pod that ended with 0 Kubernetes forgets that it was evicted.
    """
    keys = read_keys(config.ssh_dir, environ)
    _check_capabilities()
    port, claim = _own_port(config, log)
    home = private.fresh("worker", traversable=True)
    signals = Signals((signal.SIGTERM, signal.SIGINT, *((DONE,) if config.launcher else ())))
    try:
        # A worker is ready when its data is here.
        config.data.fetch(environ, signals)
        sshd = _start(keys, config._replace(port=port), home, environ)
        reaper.adopt_orphans()
        return _serve(sshd, config._replace(port=port), environ, signals, log)
    finally:
        signals.close()
        private.remove(home)
        if claim:
            claim.close()


def read_keys(explicit: str, environ: Mapping[str, str]) -> Keys:
    """The keys, or one line that says which is missing and where it was looked for."""
    if environ.get(AUTHORIZED_KEYS):
        return Keys(environ[AUTHORIZED_KEYS], environ.get(HOST_KEY) or None)
    directory = keydir.find(explicit, "authorized_keys")
    authorized = keydir.read(directory, "authorized_keys") if directory else None
    if authorized is None or not authorized.strip():
        where = directory or ", ".join(keydir.USUAL)
        what = "is empty" if authorized is not None else "is missing"
        raise UserError(
            f"authorized_keys {what} (in {where}), so nobody could log in; "
            "mount the job's SSH keys there, or say where they are: MPIBOOT_SSH_DIR or --ssh-dir"
        )
    return Keys(authorized, keydir.read(directory, PRIVATE))


def _check_capabilities() -> None:
    """Root without these can start sshd, but then every login would fail with a riddle."""
    if os.geteuid() != 0:
        return
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        effective = next((int(line.split()[1], 16) for line in file if line.startswith("CapEff:")), -1)
    lacking = [name for number, name in _NEEDED.items() if not effective >> number & 1]
    if lacking:
        raise UserError(
            f"root without the capabilities {', '.join(lacking)} cannot serve SSH logins; "
            "add them, or run as another user (runAsUser: 1000), who needs none"
        )


def _own_port(config: WorkerConfig, log: Callable[[str], None]) -> tuple[int, socket | None]:
    """A port for sshd, and what keeps other workers from it: the UDP port of the same number.

    On a host's network two workers may start at once. Both find the port free, and when one's sshd cannot have it the
    other's listens there already, and looks like its own.
    """
    if config.checkin is None:  # nobody would learn of another port
        if listening.on(config.port, config.listen):
            raise UserError(f"port {config.port} is in use already; choose another: MPIBOOT_PORT or --port")
        return config.port, None
    import socket

    port = config.port
    while True:
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((config.listen, port))
            free = not listening.on(port, config.listen)
        except OSError as error:
            free = error.errno != errno.EADDRINUSE  # no IPv4, a low port: sshd will tell what is wrong, if it is
        if free:
            if port != config.port:
                log(f"port {config.port} is in use already (host network?); SSH listens on {port} instead")
            return port, claim
        claim.close()
        with socket.socket() as probe:
            probe.bind((config.listen, 0))
            port = int(probe.getsockname()[1])


def _start(keys: Keys, config: WorkerConfig, home: str, environ: Mapping[str, str]) -> int:
    program = _sshd()
    if keys.host is None:
        _make_host_key(f"{home}/host_key", environ)
    else:
        private.write(f"{home}/host_key", keys.host if keys.host.endswith("\n") else f"{keys.host}\n")
    private.write(f"{home}/authorized_keys", keys.authorized, 0o444)  # root's sshd reads it as the user who logs in
    ranks_get = {**environ, WORKER_VARIABLE: str(os.getpid())} if config.launcher else environ
    server = Server(
        config.port, f"{home}/host_key", f"{home}/authorized_keys", ranks_get, config.listen, _knows_penalties(program)
    )
    private.write(f"{home}/sshd_config", configuration(server))
    if os.geteuid() == 0:
        # Some images lack it. If it cannot be made, sshd itself says what it misses.
        with suppress(OSError):
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
    inherited = {name: value for name, value in environ.items() if name not in SECRETS}
    return spawn.spawn([program, "-D", "-e", "-f", f"{home}/sshd_config"], inherited)


def _sshd() -> str:
    """sshd insists on its full path; a user's PATH often lacks sbin."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin:/sbin"
    try:
        return os.path.abspath(spawn.find("sshd", path))
    except spawn.NotFoundError:
        raise UserError("sshd is not installed here; install it (Debian: openssh-server)") from None


def _knows_penalties(program: str) -> bool:
    """Whether this sshd has the option PerSourcePenalties: it does not start with one it does not know.

    Its keywords stand in the program as text; older versions have no way to be asked, and asking costs a process.
    """
    try:
        with open(program, "rb") as file:
            return b"persourcepenalties" in file.read()
    except OSError:
        return False


def _make_host_key(path: str, environ: Mapping[str, str]) -> None:
    pid = spawn.spawn(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "mpiboot-worker", "-f", path], environ)
    code = reaper.exit_code(os.waitpid(pid, 0)[1])
    if code != 0:
        raise UserError(f"ssh-keygen could not make a host key in {os.path.dirname(path)}; it ended with code {code}")


def _serve(
    sshd: int, config: WorkerConfig, environ: Mapping[str, str], signals: Signals, log: Callable[[str], None]
) -> int:
    started = time.monotonic()
    if config.checkin:
        # Takes 10 ms, in which sshd gets ready. Afterwards the launcher would wait for it.
        import mpiboot.checkin.client  # noqa: F401
    while not listening.on(config.port, config.listen):
        code = _ended(sshd)
        if code is not None:
            log(f"sshd ended with code {code} before it listened on port {config.port}; its reason is above")
            return code or 1
        signals.wait(0.002)
        if told := _told_to_end(signals):
            _end(sshd, signals)
            return 0 if told == DONE else 128 + told
    took = time.monotonic() - started
    log(f"SSH listens on {config.listen or 'all addresses'} port {config.port} after {took:.2f} s")
    if config.checkin:
        _check_in(config, log)
    launcher = _launcher(config, log)
    while True:
        signals.wait(None)
        told = _told_to_end(signals)
        code = _ended(sshd)
        if told:
            _end(sshd, signals)
            if told == DONE and launcher:
                log(f"{launcher.why()}; this worker ends")
                config.data.store(environ, signals)
            return 0 if told == DONE else 128 + told
        if code is not None:
            log(f"sshd ended with code {code}")
            return code or 1


def _launcher(config: WorkerConfig, log: Callable[[str], None]) -> Alone | None:
    """Who looks whether the launcher is still there, if that is this worker's business."""
    if not config.launcher:
        return None
    from mpiboot.bootstrap.alone import Alone

    return Alone(config.launcher, config.init_timeout, log)


def _told_to_end(signals: Signals) -> int:
    """The first signal that says so, or 0."""
    return next((number for number in signals.take() if number != signal.SIGCHLD), 0)


def _ended(pid: int) -> int | None:
    """Collects every child that ended; the code of this one, if it did."""
    code = None
    for event in reaper.reap():
        if event.pid == pid and isinstance(event, reaper.Ended):
            code = event.code
    return code


def _end(sshd: int, signals: Signals) -> None:
    """Everything that runs here is told to end, and made to if it does not."""
    deadline = time.monotonic() + ENDING_MAY_TAKE
    for pid in (sshd, *reaper.descendants(os.getpid())):
        reaper.send(pid, signal.SIGTERM)
    while True:
        reaper.reap()
        left = reaper.descendants(os.getpid())
        if not left:
            return
        if time.monotonic() > deadline:
            break
        signals.wait(0.05)
        signals.take()
    for pid in left:
        reaper.send(pid, signal.SIGKILL)


def _check_in(config: WorkerConfig, log: Callable[[str], None]) -> None:
    import threading

    def report() -> None:
        from mpiboot.checkin.client import Report, post

        assert config.checkin
        urls, job, token = config.checkin
        start = f"{time.time_ns():x}"
        said = Report(config.address, config.port, _user(), config.uid, start)
        try:
            done = post(urls, job, config.number, said, token, time.monotonic() + CHECKIN_MAY_TAKE)
        except ValueError as error:
            log(f"cannot check in: {error}; launchers find this worker by DNS instead")
            return
        for failure in done.failures:
            log(f"could not check in at {failure}")

    threading.Thread(target=report, name="check-in", daemon=True).start()


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "root" if os.geteuid() == 0 else "mpiuser"
