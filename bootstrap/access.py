"""Keys, host checks and ssh configuration of a launch, written into its directory."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.bootstrap import keydir, private, spawn
from mpiboot.bootstrap.addresses import Place
from mpiboot.ssh import client as ssh_client
from mpiboot.ssh.client import Client, Effective, Peer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.host import Host
    from mpiboot.bootstrap.rundir import RunDir

SHIM = os.path.join(os.path.dirname(os.path.realpath(ssh_client.__file__)), "shim.sh")


def prepare(config: BootConfig, run: RunDir) -> Client:
    """Copy the keys to where ssh accepts them, and say what they are. A job without keys uses ssh's own."""
    private.remove(run.hosts)  # all this may be of an earlier start of the same container
    for path in (run.not_verified, run.contacted, run.live, run.identity, run.known_hosts):
        with suppress(FileNotFoundError):
            os.unlink(path)
    directory = keydir.find(config.ssh_dir, "id_rsa")
    private_key = keydir.read(directory, "id_rsa") if directory else None
    if config.ssh_dir and private_key is None:
        raise keydir.KeysError(
            f"{config.ssh_dir}/id_rsa is missing, so this launcher cannot log in anywhere; "
            "mount the job's SSH keys there, or say where they are: MPIBOOT_SSH_DIR or --ssh-dir"
        )
    identity = known_hosts = ""
    if private_key is not None:
        identity = run.identity
        private.write(identity, private_key if private_key.endswith("\n") else f"{private_key}\n")
        known_hosts = _known_hosts(directory, run, config)
    if not config.verify_hosts:
        known_hosts = "/dev/null"
        private.write(run.not_verified, "")
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
    """For who only looks whether workers answer: no key is needed for that."""
    return Client(
        identity="", known_hosts="", verify=config.verify_hosts, user=config.user, launch="", includes=_image_files()
    )


def publish(run: RunDir, client: Client, hosts: Iterable[Host]) -> None:
    """Write the configuration for these workers, and a file for each of their names, by which the shim knows them."""
    peers = list(_peers(list(hosts)))
    os.makedirs(run.hosts, 0o700, exist_ok=True)
    names = {name for peer in peers for name in (*peer.names, peer.address) if name}
    for name in names - set(os.listdir(run.hosts)):
        os.mknod(f"{run.hosts}/{name}", 0o600)
    private.write(run.ssh_config, ssh_client.configuration(client, peers))


def contacted(run: RunDir) -> list[str]:
    """The names to which ssh went so far, in that order."""
    return list(dict.fromkeys(_text(run.contacted).split()))


def shim(run: RunDir, path: str, image_shim: str) -> str:
    """The ssh to put first in PATH: the image's where it has one, else one in the launch's own directory."""
    if os.path.exists(image_shim) and path.partition(":")[0] == os.path.dirname(image_shim):
        return image_shim
    os.makedirs(run.bin, 0o700, exist_ok=True)
    target = f"{run.bin}/ssh"
    if os.statvfs(run.path).f_flag & os.ST_NOEXEC:
        # Nothing in here can be executed, but a link leads out.
        with suppress(FileExistsError):
            os.symlink(SHIM, target)
        return target
    with open(SHIM, encoding="utf-8") as file:
        private.write(target, file.read(), 0o700)
    return target


class Ports:
    """Where ssh would connect, as `ssh -G` tells: asked once, or once a host where the files tell hosts apart."""

    def __init__(self, run: RunDir, client: Client, environ: Mapping[str, str]) -> None:
        self._run, self._environ = run, environ
        texts = (text for path in client.includes for text in _with_includes(path))
        self._each = any(ssh_client.tells_hosts_apart(text) for text in texts)
        self._known: dict[str, Effective] = {}

    def __call__(self, name: str) -> int:
        return self.effective(name).port

    def effective(self, name: str) -> Effective:
        key = name if self._each else ""
        if key not in self._known:
            self._known[key] = self._ask(name)
        return self._known[key]

    def _ask(self, name: str) -> Effective:
        output = spawn.Output(["ssh", "-F", self._run.ssh_config, "-G", name], self._environ).text()
        return ssh_client.parse_effective(output) if output else Effective(ssh_client.DEFAULT_PORT, "")


def _known_hosts(directory: str, run: RunDir, config: BootConfig) -> str:
    text = keydir.read(directory, "known_hosts")
    public = keydir.read(directory, "id_rsa.pub")
    if text is None and public and keydir.read(directory, "authorized_keys") is not None:
        text = ssh_client.known_hosts(public)  # one pair for everything: it is the workers' host key, too
    if text is None:
        if config.verify_hosts and config.ssh_dir:
            halves = [name for name in ("id_rsa.pub", "authorized_keys") if keydir.read(directory, name) is None]
            raise keydir.KeysError(
                f"{directory}/known_hosts is missing, so workers cannot be told from impostors; mount it, or, if one "
                f"key pair serves for all, {' and '.join(halves) or 'a public key'} beside it; or give that up: "
                "MPIBOOT_HOST_KEYS=off or --host-keys off"
            )
        return ""
    private.write(run.known_hosts, text)
    return run.known_hosts


def _peers(hosts: Sequence[Host]) -> Iterable[Peer]:
    by_short: dict[str, int] = {}
    for host in hosts:
        first = host.name.partition(".")[0]
        by_short[first] = by_short.get(first, 0) + 1
    for host in hosts:
        place, first = host.place or Place(""), host.name.partition(".")[0]
        alias = first != host.name and not first.isdigit() and by_short[first] == 1
        yield Peer((host.name, first) if alias else (host.name,), place.address, place.port, place.user)


def _image_files() -> tuple[str, ...]:
    home = os.path.expanduser("~/.ssh/config")
    return tuple(path for path in ("/etc/ssh/ssh_config", home) if os.access(path, os.R_OK))


def _with_includes(path: str) -> Iterator[str]:
    """The text of a configuration file and of those it includes from one directory, as Debian's does."""
    text = _text(path)
    yield text
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0].lower() == "include" and words[1].endswith("/*.conf"):
            with suppress(OSError):
                yield from (_text(entry.path) for entry in os.scandir(words[1][: -len("*.conf")]))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
