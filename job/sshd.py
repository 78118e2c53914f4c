"""Workers in images that are not ours: how their sshd is started, and how one sees that it listens."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.keyfiles import ANY_USERS, PRIVATE

if TYPE_CHECKING:
    from collections.abc import Mapping

SSHD = "/usr/sbin/sshd"
OUR_ENTRYPOINT = "/usr/lib/mpiboot/entrypoint"

# A worker whose sshd never listens is reported by who waits for it, not killed by its probe: pods that wait for hours
# are normal, and a restart would repair nothing.
NEVER = 2**31 - 1

# Whether sshd listens, seen from inside its container as any user. Others may listen too: sidecars, or a whole node on
# its network. Since 8.2 sshd says it in its title. An older one is looked for at the ports of its configuration, which
# the script's arguments may name; where sshd cannot tell them, or the image has none, any socket counts.
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

PORT_IN_COMMAND = re.compile(r"\bsshd\b.*?(?:\s-p\s*|\s-o\s*['\"]?[Pp]ort[= ])(\d+)", re.DOTALL)
CONFIG_IN_COMMAND = re.compile(r"\bsshd\b.*?\s-[DdeiqTt46]*f\s*['\"]?([^\s'\";&|]+)", re.DOTALL)


# How a worker ends whose image cannot do without help: waiting for it, or starting it again, is of no use.
UNFIT = 78
UNFIT_SAYS = "mpiboot: the image "


@dataclass(frozen=True)
class Needs:
    """What an image must bring, which nobody could look into before: said by its name where it is missing."""

    image: str = "of this container"
    ours: str = "openmpi"  # the row of our images that has the job's runtime
    client: bool = False  # the launcher's image is the same one

    def script(self) -> list[str]:
        """Lines that end with UNFIT and a message: in the log, and in the file where the kubelet looks for one."""
        programs = [SSHD, *(["ssh"] if self.client else [])]
        says = '{ echo "$1" >&2; [ ! -f /dev/termination-log ] || echo "$1" >/dev/termination-log; '
        return [
            f"lacks() {says}exit {UNFIT}; }}",
            *(f"command -v {name} >/dev/null || lacks {shlex.quote(self.message(name))}" for name in programs),
        ]

    def message(self, program: str) -> str:
        fix = f"mpiboot images build {self.ours} --base {self.image} --tag TAG"
        return f"{UNFIT_SAYS}{self.image} has no {program}, and ranks are started by SSH; add it with: {fix}"


def command(ssh_dir: str, *, verify: bool, needs: Needs | None = None) -> list[str]:
    """An sshd in the foreground, or `mpiboot worker` where the image turns out to be built from one of ours.

    The job's host key comes first on the command line, so it wins over keys baked into the image. A mounted Secret is a
    directory that sshd's StrictModes would refuse. Old images lack sshd's run directory, and only root can make it.
    """
    key, any_users = shlex.quote(f"{ssh_dir}/{PRIVATE}"), shlex.quote(f"{ssh_dir}/{ANY_USERS}")
    lines = [
        f"[ ! -x {OUR_ENTRYPOINT} ] || exec {OUR_ENTRYPOINT}",
        *(needs or Needs()).script(),
        "mkdir -p /run/sshd 2>/dev/null",
    ]
    if verify:
        lines += [
            f'key={key}; [ -r "$key" ] || key={any_users}',
            # An image may name that very key already. Given twice, every client complains about a duplicate.
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
    config = CONFIG_IN_COMMAND.search(words_of(container))
    return ["/bin/sh", "-c", LISTENS, "sshd", *(["-f", config[1]] if config else [])]


def has_probe(container: Mapping[str, Any]) -> bool:
    """Whether the user said himself when this container is ready."""
    return bool(container.get("startupProbe") or container.get("readinessProbe"))


def known_port(container: Mapping[str, Any]) -> int | None:
    """The port of a container's sshd, if its command or its declared ports say so."""
    if match := PORT_IN_COMMAND.search(words_of(container)):
        return int(match[1])
    for port in container.get("ports") or ():
        number = port.get("containerPort") if isinstance(port, dict) else None
        if number in (22, 2222) or (isinstance(number, int) and "ssh" in str(port.get("name"))):
            return int(number)
    return None


def words_of(container: Mapping[str, Any]) -> str:
    return " ".join(map(str, [*(container.get("command") or ()), *(container.get("args") or ())]))
