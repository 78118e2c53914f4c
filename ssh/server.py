"""The configuration of a worker's sshd, as text. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job.names import AUTHORIZED_KEYS, HOST_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

# Variables for mpiboot itself: no program that it starts receives them.
SECRETS = frozenset({"MPIBOOT_TOKEN", HOST_KEY, AUTHORIZED_KEYS})
# Variables of this process or of the login itself, and others that ranks do not need.
NOT_FOR_RANKS = SECRETS | {
    "HOME", "PWD", "OLDPWD", "HOSTNAME", "USER", "LOGNAME", "SHELL", "SHLVL", "MAIL", "TERM", "TMUX", "_",
    "MPIBOOT_CHECKIN", "MPIBOOT_LAUNCH", "MPIBOOT_SSH_CONFIG", "NOTIFY_SOCKET",
}  # fmt: skip
NOT_FOR_RANKS_PREFIXES = ("SSH_", "DBUS_", "XDG_")

# By this variable a launcher finds what it started here, and nothing else, when it cleans up.
LAUNCH_VARIABLE = "MPIBOOT_LAUNCH"
# The number of the attempt, for ranks: not every mpirun passes the launcher's environment on.
ATTEMPT_VARIABLE = "MPIBOOT_ATTEMPT"
# By this one it finds the worker itself, where it is to end the worker.
WORKER_VARIABLE = "MPIBOOT_WORKER"


# Every sshd of a worker has these. images/kit/ssh/sshd.conf repeats them, and a test compares the two.
SETTINGS = (
    "PidFile none",
    "StrictModes no",  # keys are our private copies; a home that an fsGroup made group-writable is harmless
    "UsePAM no",
    "PubkeyAuthentication yes",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "UseDNS no",
    "X11Forwarding no",
    "PrintMotd no",
    "PrintLastLog no",
    "LoginGraceTime 60",
    # mpirun opens all its connections at once, from one address.
    "MaxStartups 1000:30:2000",
    "MaxSessions 1000",
)


class Server(NamedTuple):
    """What an sshd needs to know. Paths are absolute; an empty `listen` means every address."""

    port: int
    host_key: str
    authorized_keys: str
    environment: Mapping[str, str]
    listen: str = ""
    knows_penalties: bool = False


def configuration(server: Server) -> str:
    """The text for `sshd -f`: works as root and as any other user, writes nothing, makes no DNS request."""
    lines = [f"Port {server.port}"]
    if server.listen:
        lines.append(f"ListenAddress {server.listen}")
    lines += [
        f"HostKey {_quoted(server.host_key)}",
        f"AuthorizedKeysFile {_quoted(server.authorized_keys)}",
        *SETTINGS,
        "Subsystem sftp internal-sftp",
        f"AcceptEnv {LAUNCH_VARIABLE} {ATTEMPT_VARIABLE} LANG LC_*",
    ]
    if server.knows_penalties:
        lines.append("PerSourcePenalties no")  # else sshd locks out launchers that probe it
    variables = set_env(server.environment)
    if variables:
        lines.append(variables)
    return "\n".join(lines) + "\n"


def set_env(environment: Mapping[str, str]) -> str:
    """The one directive that hands a container's environment to its ranks; sshd ignores a second one."""
    words = [f"{_quoted(f'{name}={value}')}" for name, value in environment.items() if _for_ranks(name, value)]
    return f"SetEnv {' '.join(words)}" if words else ""


def _for_ranks(name: str, value: str) -> bool:
    ours = name in NOT_FOR_RANKS or name.startswith(NOT_FOR_RANKS_PREFIXES)
    # A configuration line cannot hold a line break; dash cannot hold names like `BASH_FUNC_x%%`.
    return not ours and name.isidentifier() and name.isascii() and "\n" not in value and "\r" not in value


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
