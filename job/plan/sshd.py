"""Workers in images that are not ours: the command that starts their sshd, and the probe that it listens."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.names import ANY_USERS, AUTHORIZED_KEYS, HOST_KEY, PRIVATE
from mpiboot.job.template import words

if TYPE_CHECKING:
    from collections.abc import Mapping

SSHD = "/usr/sbin/sshd"
OUR_ENTRYPOINT = "/usr/lib/mpiboot/entrypoint"

# The launcher or the operator reports a worker whose sshd never listens; the probe must not kill it. Pods that wait for
# hours are normal, and a restart would repair nothing.
NEVER = 2**31 - 1

# Whether sshd listens, checked inside its container as any user. Other programs may listen too: sidecars, or a whole
# node on the node's network. Since 8.2 sshd shows it in its process title. For an older sshd the script checks the
# ports of its configuration, which the script's arguments may name; if sshd cannot print them, any socket counts.
LISTENS = """{
PATH=$PATH:/usr/sbin runs= ports=
for process in /proc/[0-9]*; do
  read -r name <"$process/comm" && [ "$name" = sshd ] || continue
  read -r title <"$process/cmdline"
  case "$title" in *"[listener]"*) exit 0 ;; "sshd: "*) ;; *) runs=yes ;; esac
done
if command -v sshd >&2; then
  [ "$runs" ] || exit 1
  ports=$(sshd -T "$@" | while read -r key port; do [ "$key" = port ] && printf ":%04X " "$port"; done)
fi
for table in /proc/net/tcp /proc/net/tcp6; do
  while read -r _ local _ state _; do
    [ "$state" = 0A ] || continue
    case " $ports" in " " | *":${local##*:} "*) exit 0 ;; esac
  done <"$table"
done
exit 1
} 2>/dev/null"""

# Searched for one after the other: one pattern for both takes a time that grows with the square of a long command.
SERVER = re.compile(r"\bsshd\b")
PORT = re.compile(r"(?:\s-p\s*|\s-o\s*['\"]?[Pp]ort[= ])([0-9]{1,5})(?![0-9])")
CONFIG = re.compile(r"\s-[DdeiqTt46]*f\s*['\"]?([^\s'\";&|]{1,4096})(?![^\s'\";&|])")


# The exit code of a worker whose image lacks sshd or ssh: neither waiting nor a restart helps.
UNFIT = 78
UNFIT_SAYS = "mpiboot: the image "


@dataclass(frozen=True)
class Needs:
    """The programs that an image must have. The worker checks them at its start, because the operator cannot."""

    image: str = ""  # its name; empty where it is not known
    ours: str = "openmpi"  # the row of our images that has the job's runtime
    client: bool = False  # the launcher's image is the same one

    def script(self) -> list[str]:
        """Shell lines that exit with UNFIT and write a message to the log and to the kubelet's termination log."""
        programs = [SSHD, *(["ssh"] if self.client else [])]
        says = '{ echo "$1" >&2; [ ! -f /dev/termination-log ] || echo "$1" >/dev/termination-log; '
        return [
            f"lacks() {says}exit {UNFIT}; }}",
            *(f"command -v {name} >/dev/null || lacks {shlex.quote(self.message(name))}" for name in programs),
        ]

    def message(self, program: str) -> str:
        fix = f"mpiboot images build {self.ours} --base {self.image or 'IMAGE'} --tag TAG"
        image = self.image or "of this container"
        return f"{UNFIT_SAYS}{image} has no {program}, and ranks are started by SSH; add it with: {fix}"


# The keys of a worker that mounts nothing. Another user than sshd's may be the one that logs in and reads the second.
PRIVATE_KEYS = [
    "keys=$(mktemp -d /dev/shm/mpiboot.XXXXXX 2>/dev/null || mktemp -d) && chmod 755 $keys || exit 73",
    f'(umask 077; echo "${HOST_KEY}" >$keys/id_rsa)',
    f'echo "${AUTHORIZED_KEYS}" >$keys/authorized_keys',
    f"unset {HOST_KEY} {AUTHORIZED_KEYS}",
    "set -- -o HostKey=$keys/id_rsa -o AuthorizedKeysFile=$keys/authorized_keys",
]


def command(ssh_dir: str, *, verify: bool, mountless: bool = False, needs: Needs | None = None) -> list[str]:
    """An sshd in the foreground, or `mpiboot worker` if the image proves to be built from one of ours.

    The job's host key comes first on the command line, so it wins over keys baked into the image. A mounted Secret is a
    directory that sshd's StrictModes would refuse. Old images lack sshd's run directory, and only root can make it.
    """
    key, any_users = shlex.quote(f"{ssh_dir}/{PRIVATE}"), shlex.quote(f"{ssh_dir}/{ANY_USERS}")
    lines = [
        f"[ ! -x {OUR_ENTRYPOINT} ] || exec {OUR_ENTRYPOINT}",
        *(needs or Needs()).script(),
        "mkdir -p /run/sshd 2>/dev/null",
    ]
    if mountless:
        lines += PRIVATE_KEYS
    elif verify:
        lines += [
            f'key={key}; [ -r "$key" ] || key={any_users}',
            # An image may name that very key already. ParameterValues twice, every client complains about a duplicate.
            f'[ "$({SSHD} -T 2>/dev/null | grep "^hostkey ")" = "hostkey $key" ] || set -- -o "HostKey=\\"$key\\""',
        ]
    return ["/bin/sh", "-c", "\n".join([*lines, f'exec {SSHD} -De -o StrictModes=no "$@"'])]


def probe(container: Mapping[str, Any], port: int | None = None) -> dict[str, Any]:
    """A startup probe that succeeds once sshd listens: a TCP connection where the port is known."""
    port = port or known_port(container)
    check = {"tcpSocket": {"port": port}} if port else {"exec": {"command": listens(container)}}
    return {**check, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": NEVER}


def listens(container: Mapping[str, Any]) -> list[str]:
    """The command of a probe that does not know the port."""
    config = option(container, CONFIG)
    return ["/bin/sh", "-c", LISTENS, "sshd", *(["-f", config] if config else [])]


def known_port(container: Mapping[str, Any]) -> int | None:
    """The port of a container's sshd, if its command or its declared ports say so."""
    if port := option(container, PORT):
        return int(port)
    for declared in container.get("ports") or ():
        number = declared.get("containerPort") if isinstance(declared, dict) else None
        if number in (22, 2222) or (isinstance(number, int) and "ssh" in str(declared.get("name"))):
            return int(number)
    return None


def option(container: Mapping[str, Any], pattern: re.Pattern[str]) -> str | None:
    """The value of the first option after `sshd` in a container's command, if the command starts one."""
    text = " ".join(words(container))
    server = SERVER.search(text)
    found = server and pattern.search(text, server.end())
    return found[1] if found else None
