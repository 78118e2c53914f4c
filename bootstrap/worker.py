"""`mpiboot worker`: runs an sshd for the launcher, as any user, and does the duties of process 1 meanwhile."""

# The worker starts sshd before it imports what sshd does not need: the launcher waits for the workers.
from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap import files, keydir
from mpiboot.bootstrap.process import listening, reaper, spawn
from mpiboot.bootstrap.process.signals import DONE, Signals
from mpiboot.job.errors import UserError
from mpiboot.job.names import AUTHORIZED_KEYS, HOST_KEY, PRIVATE
from mpiboot.ssh.server import SECRETS, WORKER_VARIABLE, Server, configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket

    from mpiboot.bootstrap.config import WorkerConfig
    from mpiboot.bootstrap.launcher_watch import LauncherWatch

# Long enough for ranks that write a last file, short enough for users who wait for the pod to end.
ENDING_MAY_TAKE = 5.0
CHECKIN_MAY_TAKE = 600.0
_NEEDED = {6: "SETGID", 7: "SETUID", 18: "SYS_CHROOT"}  # capability number -> name


class Keys(NamedTuple):
    """Texts of the files or variables. No host key: sshd gets a fresh one."""

    authorized: str
    host: str | None


def run(config: WorkerConfig, environ: Mapping[str, str], log: Callable[[str], None]) -> int:
    """Serves until SIGTERM or SIGINT (128+N), until its launcher is gone (0), or until sshd ends by itself (its code).

    A signal is not a success: Kubernetes forgets that a pod was evicted if the pod ended with 0.
    """
    keys = read_keys(config.ssh_dir, environ)
    _check_capabilities()
    port, claim = _own_port(config, log)
    home = files.fresh_directory("worker", traversable=True)
    signals = Signals((signal.SIGTERM, signal.SIGINT, *((DONE,) if config.launcher else ())))
    try:
        # A worker is ready when its data is here.
        if config.data.download:
            from mpiboot.bootstrap.data import move

            move.fetch(config.data.download, config.data.keys, environ, signals)
        sshd = _start(keys, config._replace(port=port), home, environ)
        reaper.adopt_orphans()
        return _serve(sshd, config._replace(port=port), environ, signals, log)
    finally:
        signals.close()
        files.remove_directory(home)
        if claim:
            claim.close()


def read_keys(explicit: str, environ: Mapping[str, str]) -> Keys:
    """The keys, or an error that names the missing key and the directories that were searched."""
    if environ.get(AUTHORIZED_KEYS):
        return Keys(environ[AUTHORIZED_KEYS], environ.get(HOST_KEY) or None)
    directory = keydir.find(explicit, "authorized_keys")
    authorized = keydir.read(directory, "authorized_keys") if directory else None
    if authorized is None or not authorized.strip():
        where = directory or ", ".join(keydir.USUAL)
        what = "is empty" if authorized is not None else "is missing"
        raise UserError(
            f"authorized_keys {what} (in {where}), so the launcher could not log in; "
            "mount the job's SSH keys there, or set MPIBOOT_SSH_DIR or --ssh-dir"
        )
    return Keys(authorized, keydir.read(directory, PRIVATE))


def _check_capabilities() -> None:
    """Without these capabilities root can start sshd, but every login fails with an error that names no cause."""
    if os.geteuid() != 0:
        return
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        effective = next((int(line.split()[1], 16) for line in file if line.startswith("CapEff:")), -1)
    lacking = [name for number, name in _NEEDED.items() if not effective >> number & 1]
    if lacking:
        raise UserError(
            f"root without the capabilities {', '.join(lacking)} cannot serve SSH logins; "
            "add them, or run as another user (runAsUser: 1000), which needs none"
        )


def _own_port(config: WorkerConfig, log: Callable[[str], None]) -> tuple[int, socket | None]:
    """A port for sshd, and a socket that reserves it: on the UDP port of the same number.

    Two workers may start at once on a host's network. Both find the port free. The second sshd cannot bind it, yet a
    check succeeds, because the first sshd listens there.
    """
    if config.checkin is None:  # launchers would not learn another port
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
            free = error.errno != errno.EADDRINUSE  # no IPv4, or a low port: sshd reports what is wrong
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
        files.write(f"{home}/host_key", keys.host if keys.host.endswith("\n") else f"{keys.host}\n")
    # an sshd of root reads this file as the user who logs in
    files.write(f"{home}/authorized_keys", keys.authorized, 0o444)
    ranks_get = {**environ, WORKER_VARIABLE: str(os.getpid())} if config.launcher else environ
    server = Server(
        config.port, f"{home}/host_key", f"{home}/authorized_keys", ranks_get, config.listen, _knows_penalties(program)
    )
    files.write(f"{home}/sshd_config", configuration(server))
    if os.geteuid() == 0:
        # Some images lack this directory. If the worker cannot make it, sshd says that it is missing.
        with suppress(OSError):
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
    inherited = {name: value for name, value in environ.items() if name not in SECRETS}
    return spawn.spawn([program, "-D", "-e", "-f", f"{home}/sshd_config"], inherited)


def _sshd() -> str:
    """sshd must be started by its full path, and a user's PATH often lacks sbin."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin:/sbin"
    try:
        return os.path.abspath(spawn.find("sshd", path))
    except spawn.NotFoundError:
        raise UserError("sshd is not installed here; install it (Debian: openssh-server)") from None


def _knows_penalties(program: str) -> bool:
    """Whether this sshd knows the option PerSourcePenalties: sshd does not start with an unknown option.

    The program's file holds its keywords as text. Older versions cannot list them, and asking costs a process.
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
        # This import takes 10 ms. Here it runs while sshd starts; later the launcher would wait for it.
        import mpiboot.checkin.client  # noqa: F401
    while not listening.on(config.port, config.listen):
        code = _ended(sshd)
        if code is not None:
            log(f"sshd ended with code {code} before it listened on port {config.port}; its reason is above")
            return code or 1
        signals.wait(0.002)
        if ending := _ending(signals):
            _end(sshd, signals)
            return 0 if ending == DONE else 128 + ending
    took = time.monotonic() - started
    log(f"SSH listens on {config.listen or 'all addresses'} port {config.port} after {took:.2f} s")
    if config.checkin:
        _check_in(config, log)
    launcher = _watch_launcher(config, log)
    while True:
        signals.wait(None)
        ending = _ending(signals)
        code = _ended(sshd)
        if ending:
            _end(sshd, signals)
            if ending == DONE and launcher:
                log(f"{launcher.end_reason()}; this worker ends")
                _store_data(config, environ, signals)
            return 0 if ending == DONE else 128 + ending
        if code is not None:
            log(f"sshd ended with code {code}")
            return code or 1


def _store_data(config: WorkerConfig, environ: Mapping[str, str], signals: Signals) -> None:
    if config.data.upload:
        from mpiboot.bootstrap.data import move

        move.store(config.data.upload, config.data.keys, environ, signals)


def _watch_launcher(config: WorkerConfig, log: Callable[[str], None]) -> LauncherWatch | None:
    """Watches the launcher, if --launcher names one."""
    if not config.launcher:
        return None
    from mpiboot.bootstrap.launcher_watch import LauncherWatch

    return LauncherWatch(config.launcher, config.init_timeout, log)


def _ending(signals: Signals) -> int:
    """The first signal that ends the worker, or 0."""
    return next((number for number in signals.take() if number != signal.SIGCHLD), 0)


def _ended(pid: int) -> int | None:
    """Collects all children that ended. Returns the exit code of this one if it is among them."""
    code = None
    for event in reaper.reap():
        if event.pid == pid and isinstance(event, reaper.Ended):
            code = event.code
    return code


def _end(sshd: int, signals: Signals) -> None:
    """Send SIGTERM to every process in the worker, and SIGKILL to those that are left after a while."""
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
