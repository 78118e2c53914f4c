"""Writes the keys, the known hosts and the ssh configuration of a launch into its directory."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.bootstrap import files, keydir
from mpiboot.bootstrap.hosts import Endpoint
from mpiboot.bootstrap.process import spawn
from mpiboot.job.errors import UserError
from mpiboot.job.names import known_hosts
from mpiboot.ssh import client as ssh_client
from mpiboot.ssh.client import Client, Effective, Peer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.run.rundir import RunDir
    from mpiboot.bootstrap.wait.worker_table import Worker

SHIM = os.path.join(os.path.dirname(os.path.realpath(ssh_client.__file__)), "shim.sh")


def prepare(config: BootConfig, run: RunDir) -> Client:
    """Copy the keys to a place where ssh accepts them. A job without keys uses ssh's defaults."""
    files.remove_directory(run.hosts)  # these files may be from an earlier start of the same container
    for path in (run.not_verified, run.contacted, run.live, run.starts, run.identity, run.known_hosts):
        with suppress(FileNotFoundError):
            os.unlink(path)
    directory = keydir.find(config.ssh_dir, "id_rsa")
    private_key = keydir.read(directory, "id_rsa") if directory else None
    if config.ssh_dir and private_key is None:
        raise UserError(
            f"{config.ssh_dir}/id_rsa is missing, so this launcher cannot log in anywhere; "
            "mount the job's SSH keys there, or set MPIBOOT_SSH_DIR or --ssh-dir"
        )
    identity = known_hosts = ""
    if private_key is not None:
        identity = run.identity
        files.write(identity, private_key if private_key.endswith("\n") else f"{private_key}\n")
        known_hosts = _known_hosts(directory, run, config)
    if not config.verify_hosts:
        known_hosts = "/dev/null"
        files.write(run.not_verified, "")
    return Client(
        identity=identity,
        known_hosts=known_hosts,
        verify=config.verify_hosts,
        user=config.user,
        launch=f"{os.getpid()}-{os.urandom(8).hex()}",
        includes=_image_files(),
        keep_alive=config.elastic,
    )


def anonymous(config: BootConfig) -> Client:
    """The settings for probes only, which need no key."""
    return Client(
        identity="", known_hosts="", verify=config.verify_hosts, user=config.user, launch="", includes=_image_files()
    )


def publish(run: RunDir, client: Client, hosts: Iterable[Worker]) -> None:
    """Write the ssh configuration for these workers, and a file for each of their names, for the shim."""
    peers = list(_peers(list(hosts)))
    os.makedirs(run.hosts, 0o700, exist_ok=True)
    names = {name for peer in peers for name in (*peer.names, peer.address) if name}
    for name in names - set(os.listdir(run.hosts)):
        os.mknod(f"{run.hosts}/{name}", 0o600)
    files.write(run.ssh_config, ssh_client.configuration(client, peers))


def contacted(run: RunDir) -> list[str]:
    """The names that ssh was called for so far, in that order."""
    return list(dict.fromkeys(_text(run.contacted).split()))


def shim(run: RunDir, path: str, image_shim: str) -> str:
    """The ssh to put first in PATH: the image's if it has one, else a copy in the launch's directory."""
    if os.path.exists(image_shim) and path.partition(":")[0] == os.path.dirname(image_shim):
        return image_shim
    os.makedirs(run.bin, 0o700, exist_ok=True)
    target = f"{run.bin}/ssh"
    if os.statvfs(run.path).f_flag & os.ST_NOEXEC:
        # No file in this directory can be executed, but a link to one elsewhere can.
        with suppress(FileExistsError):
            os.symlink(SHIM, target)
        return target
    with open(SHIM, encoding="utf-8") as file:
        files.write(target, file.read(), 0o700)
    return target


class Ports:
    """The ports and users that ssh would use: one `ssh -G`, or one a host if the files have settings for hosts."""

    def __init__(self, run: RunDir, client: Client, environ: Mapping[str, str]) -> None:
        self._run, self._environ = run, environ
        texts = (text for path in client.includes for text in _with_includes(path))
        self._each = any(ssh_client.tells_hosts_apart(text) for text in texts)
        self._known: dict[str, Effective] = {}

    def known(self, name: str) -> int | None:
        """The port, if `effective` has found it already. Never blocks."""
        effective = self._known.get(self.group(name))
        return effective.port if effective else None

    def of(self, worker: Worker) -> int:
        """The port of a worker's sshd. May take as long as `effective` where no source of addresses names it."""
        named = worker.endpoint.port if worker.endpoint else None
        return named or self.effective(worker.name).port

    def group(self, name: str) -> str:
        """Names of the same group share one result."""
        return name if self._each else ""

    def effective(self, name: str) -> Effective:
        """The result of `ssh -G`, which may take up to 5 s."""
        group = self.group(name)
        if group not in self._known:
            self._known[group] = self._ask(name)
        return self._known[group]

    def _ask(self, name: str) -> Effective:
        output = spawn.Output(["ssh", "-F", self._run.ssh_config, "-G", name], self._environ).text()
        return ssh_client.parse_effective(output) if output else Effective(ssh_client.DEFAULT_PORT, "")


def _known_hosts(directory: str, run: RunDir, config: BootConfig) -> str:
    text = keydir.read(directory, "known_hosts")
    public = keydir.read(directory, "id_rsa.pub")
    if text is None and public and keydir.read(directory, "authorized_keys") is not None:
        text = known_hosts(public)  # one key pair for everything: it is the workers' host key as well
    if text is None:
        if config.verify_hosts and config.ssh_dir:
            halves = [name for name in ("id_rsa.pub", "authorized_keys") if keydir.read(directory, name) is None]
            raise UserError(
                f"{directory}/known_hosts is missing, so host keys cannot be verified; mount it, or, "
                f"if one key pair serves for all, {' and '.join(halves) or 'a public key'} beside it; or "
                "switch verification off: MPIBOOT_HOST_KEYS=off or --host-keys off"
            )
        return ""
    files.write(run.known_hosts, text)
    return run.known_hosts


def _peers(hosts: Sequence[Worker]) -> Iterable[Peer]:
    by_short: dict[str, int] = {}
    for host in hosts:
        first = host.name.partition(".")[0]
        by_short[first] = by_short.get(first, 0) + 1
    for host in hosts:
        endpoint, first = host.endpoint or Endpoint(""), host.name.partition(".")[0]
        alias = first != host.name and not first.isdigit() and by_short[first] == 1
        yield Peer((host.name, first) if alias else (host.name,), endpoint.address, endpoint.port, endpoint.user)


def _image_files() -> tuple[str, ...]:
    home = os.path.expanduser("~/.ssh/config")
    return tuple(path for path in ("/etc/ssh/ssh_config", home) if os.access(path, os.R_OK))


def _with_includes(path: str) -> Iterator[str]:
    """The text of a configuration file, and of the files it includes from one directory, as on Debian."""
    text = _text(path)
    yield text
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0].lower() == "include" and words[1].endswith("/*.conf"):
            with suppress(OSError):
                yield from (_text(entry.path) for entry in os.scandir(words[1][: -len("*.conf")]))


def _text(path: str) -> str:
    try:
        return files.read_text(path)
    except OSError:
        return ""
