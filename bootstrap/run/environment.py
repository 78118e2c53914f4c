"""The environment of the command: it makes every MPI use our ssh, our hostfile and our addresses."""

# For all runtimes at once, whichever mpirun comes first in PATH: a script may call another one, and names do not clash.
from __future__ import annotations

import fcntl
import os
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.job import mpi
from mpiboot.ssh.server import ATTEMPT_VARIABLE, SECRETS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


# Ranks always get these from the launcher, if they are set.
LIBRARIES = "LD_LIBRARY_PATH"
# What programs of torch read to find the host of rank 0 (init_method env://); mpirun itself says a rank's number.
MASTER_ADDRESS, MASTER_PORT = "MASTER_ADDR", "MASTER_PORT"
ALWAYS_FORWARDED = ("PATH", LIBRARIES, ATTEMPT_VARIABLE, MASTER_ADDRESS, MASTER_PORT)


class Setting(NamedTuple):
    """Where this launch has its files; an empty path: it has no such file. `hostfiles` are the paths by form, and
    `given_hostfile` is the one that ours replaces.
    """

    ssh_config: str
    shim: str
    hostfiles: Mapping[str, str]
    hostfile: str
    given_hostfile: str
    live: str
    interface: str
    first_address: str  # at which others reach the first host
    ranks_a_host: str
    root: bool
    # Open MPI 4 ends with an error if `mpirun -x` meets the list of variables to forward. horovodrun always uses -x.
    sets_forward_list: bool = True


def build(environ: Mapping[str, str], setting: Setting, forward: Collection[str]) -> dict[str, str]:
    """The whole environment. Variables of the user stay, unless they name the hostfile that ours replaces."""
    result = {name: value for name, value in environ.items() if name not in SECRETS}
    for name, value in _ours(setting).items():
        if value and result.get(name, setting.given_hostfile) == setting.given_hostfile:
            result[name] = value
    result["PATH"] = with_shim_first(environ.get("PATH", "/usr/bin:/bin"), setting.shim)
    result["MPIBOOT_SSH_CONFIG"] = setting.ssh_config
    files = {"MPIBOOT_HOSTFILE": setting.hostfile, "MPIBOOT_LIVE_HOSTS": setting.live}
    result |= {name: path for name, path in files.items() if path}
    if LIBRARIES in forward:
        # A script may set it later, and Open MPI refuses to forward a variable that is not set. Empty means not set.
        result.setdefault(LIBRARIES, "")
    names = matching(result, [*forward, *ALWAYS_FORWARDED])
    # Hydra forwards its whole environment, Open MPI the variables in this list.
    for variable in filter(None, (runtime.forward_list for runtime in mpi.RUNTIMES)):
        given = result.get(variable, "")
        if setting.sets_forward_list or forward or given:
            result[variable] = ";".join(dict.fromkeys([*filter(None, given.split(";")), *names]))
    return result


def matching(environ: Mapping[str, str], patterns: Iterable[str]) -> list[str]:
    """The variables that are set and match a pattern: a name, or a beginning as in `NCCL_*`."""
    names: list[str] = []
    for pattern in patterns:
        if pattern.endswith("*"):
            names += sorted(name for name in environ if name.startswith(pattern[:-1]) and name not in SECRETS)
        elif pattern in environ and pattern not in SECRETS:
            names.append(pattern)
    return list(dict.fromkeys(names))


def with_shim_first(path: str, shim: str) -> str:
    directory = shim.rpartition("/")[0]
    return path if path.partition(":")[0] == directory else f"{directory}:{path}"


def _ours(setting: Setting) -> dict[str, str]:
    variables = {MASTER_ADDRESS: setting.first_address, MASTER_PORT: some_port() if setting.first_address else ""}
    for runtime in mpi.RUNTIMES:
        variables |= dict.fromkeys(runtime.hostfile_variables, setting.hostfiles.get(runtime.hostfile.name, ""))
        variables |= dict.fromkeys(runtime.ssh_variables, setting.shim)
        variables |= dict.fromkeys(runtime.full_names, "true")
        variables |= dict.fromkeys(runtime.ranks_a_host, setting.ranks_a_host)
        variables |= dict.fromkeys(runtime.interface_variables, setting.interface)
        # At any size: in a tree, workers log in to one another, and they have no key for that.
        variables |= dict((*runtime.by_ssh, *runtime.always, *runtime.flat))
    return variables | (mpi.root_may_run() if setting.root else {})


def some_port() -> str:
    """A port below those that systems give to clients. Any: two jobs may share a host, and so its ports."""
    return str(20000 + int.from_bytes(os.urandom(2), "big") % 10000)


_GET_ADDRESS = 0x8915  # SIOCGIFADDR


def interface_towards(address: str) -> str:
    """The interface that routes packets to this address; empty if it is not known.

    Hydra sends its daemons this host's name to call back, which nothing resolves in the first seconds of a pod. With an
    interface it sends an address.
    """
    own = own_address(address)
    if not own:
        return ""
    if ":" in own:
        return _of_ipv6(own)
    if own.startswith("127."):
        return "lo"
    for _, name in socket.if_nameindex():
        if _ipv4(name) == own:
            return name
    return ""


def own_address(target: str) -> str:
    """This host's address in packets to that one; empty if there is no route."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((target, 9))  # UDP: finds the route and sends nothing
            return str(sock.getsockname()[0])
    except OSError:
        return ""


def _ipv4(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def _of_ipv6(own: str) -> str:
    wanted = socket.inet_pton(socket.AF_INET6, own.partition("%")[0]).hex()
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            return next((line.split()[-1] for line in file if line.startswith(wanted)), "")
    except OSError:
        return ""
