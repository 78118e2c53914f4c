"""The configuration of a launcher's ssh, as text, and what `ssh -G` prints. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.ssh.server import ATTEMPT_VARIABLE, LAUNCH_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEFAULT_PORT = 2222

# OpenSSH 9.2's first choice takes 107 ms of processor time a host, curve25519 15 ms, and the first here 2 ms less on
# either side. Written out, because the short form '^ecdh-sha2-nistp256' is an error for versions before 8.0.
KEX = ",".join((
    "ecdh-sha2-nistp256", "curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521", "diffie-hellman-group-exchange-sha256", "diffie-hellman-group14-sha256",
))  # fmt: skip


class Peer(NamedTuple):
    """A worker in ssh's configuration. `names` are all its names; the first one is the hostfile's.

    Without an address, ssh asks for the name itself. Where port or user are None the image's own files decide.
    """

    names: tuple[str, ...]
    address: str
    port: int | None = None
    user: str | None = None


class Client(NamedTuple):
    """What holds for every worker. Paths are absolute; an empty one leaves ssh its own choice."""

    identity: str
    known_hosts: str
    verify: bool
    user: str
    launch: str
    includes: tuple[str, ...]
    keep_alive: bool = False
    attempt: int = 1


class Effective(NamedTuple):
    """The port and the user that ssh would take."""

    port: int
    user: str


def configuration(client: Client, peers: Sequence[Peer]) -> str:
    """The text for `ssh -F`: addresses of its own, then keys and checks, then the image's files, then the port 2222."""
    lines = [line for peer in peers for line in _peer(peer)]
    names = [name for peer in peers for name in dict.fromkeys((*peer.names, peer.address)) if name]
    # An exact list: connections to other hosts stay as the user configured them.
    lines += [line for chunk in _chunks(names) for line in (f"Host {' '.join(chunk)}", *_for_all(client))]
    lines += ["Match all", *(f"Include {_quoted(path)}" for path in client.includes)]
    lines += [line for chunk in _chunks(names) for line in (f"Host {' '.join(chunk)}", f"  Port {DEFAULT_PORT}")]
    return "\n".join(lines) + "\n"


def parse_effective(text: str) -> Effective:
    """What `ssh -G NAME` printed."""
    found = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
    return Effective(int(found.get("port", DEFAULT_PORT)), found.get("user", ""))


def tells_hosts_apart(text: str) -> bool:
    """Whether an ssh configuration file has settings for some hosts only; then `ssh -G` has to be asked for each."""
    for line in text.splitlines():
        words = line.replace("=", " ").split()
        if words and words[0].lower() in ("host", "match") and words[1:] not in (["*"], ["all"]):
            return True
    return False


def _peer(peer: Peer) -> Iterable[str]:
    yield f"Host {' '.join(dict.fromkeys(filter(None, (*peer.names, peer.address))))}"
    if peer.address:
        yield f"  HostName {peer.address}"
    # A known_hosts that a user brings knows names, and addresses come and go.
    yield f"  HostKeyAlias {peer.names[0]}"
    if peer.port is not None:
        yield f"  Port {peer.port}"
    if peer.user:
        yield f"  User {peer.user}"


def _for_all(client: Client) -> Iterable[str]:
    if client.user:
        yield f"  User {client.user}"
    if client.identity:
        yield f"  IdentityFile {_quoted(client.identity)}"
        yield "  IdentitiesOnly yes"
    if client.known_hosts:
        yield f"  UserKnownHostsFile {_quoted(client.known_hosts)}"
        yield "  GlobalKnownHostsFile /dev/null"
        yield f"  StrictHostKeyChecking {'yes' if client.verify else 'no'}"
        yield "  CheckHostIP no"
        yield "  UpdateHostKeys no"
    yield "  BatchMode yes"
    yield "  PreferredAuthentications publickey"
    yield "  GSSAPIAuthentication no"
    yield "  ForwardAgent no"
    yield "  ForwardX11 no"
    yield f"  KexAlgorithms {KEX}"
    # An elastic job goes on without a worker that does not answer, so it must notice that soon.
    yield f"  ConnectTimeout {5 if client.keep_alive else 15}"
    yield f"  ConnectionAttempts {2 if client.keep_alive else 3}"
    yield "  LogLevel ERROR"
    if client.launch:
        yield f"  SetEnv {LAUNCH_VARIABLE}={client.launch} {ATTEMPT_VARIABLE}={client.attempt}"
    if client.keep_alive:
        # A worker whose network is cut must be noticed within seconds where the job can go on without it.
        yield "  ServerAliveInterval 3"
        yield "  ServerAliveCountMax 2"


def _chunks(names: Sequence[str], size: int = 500) -> Iterable[Sequence[str]]:
    """Lines of bearable length."""
    return (names[start : start + size] for start in range(0, len(names), size))


def _quoted(path: str) -> str:
    return f'"{path}"'
