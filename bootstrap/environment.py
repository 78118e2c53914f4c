"""The environment of the command: what makes every MPI use our ssh, our hostfile and our addresses. Pure."""

# All families at once, whatever mpirun comes first in PATH: a script may call another one, and the names do not clash.
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpiboot.ssh.server import SECRETS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# What ranks always get from the launcher, as far as it is set.
LIBRARIES = "LD_LIBRARY_PATH"
ALWAYS_FORWARDED = ("PATH", LIBRARIES)


class Setting(NamedTuple):
    """Where this launch has its files; an empty one it has not. `given_hostfile` is the one that ours replaces."""

    ssh_config: str
    shim: str
    openmpi_hostfile: str
    hydra_hostfile: str
    hostfile: str
    given_hostfile: str
    live: str
    interface: str
    ranks_a_host: str
    root: bool
    # Open MPI 4 ends with an error where `mpirun -x` meets the list of names to forward, and horovodrun always says -x.
    list_beside_x: bool = True


def build(environ: Mapping[str, str], setting: Setting, forward: Collection[str]) -> dict[str, str]:
    """The whole environment. What a user set stays, unless it names the hostfile that ours replaces."""
    result = {name: value for name, value in environ.items() if name not in SECRETS}
    for name, value in _ours(setting).items():
        if value and result.get(name, setting.given_hostfile) == setting.given_hostfile:
            result[name] = value
    result["PATH"] = with_shim_first(environ.get("PATH", "/usr/bin:/bin"), setting.shim)
    result["MPIBOOT_SSH_CONFIG"] = setting.ssh_config
    files = {"MPIBOOT_HOSTFILE": setting.hostfile, "MPIBOOT_LIVE_HOSTS": setting.live}
    result |= {name: path for name, path in files.items() if path}
    if LIBRARIES in forward:
        # A script may set it later, and Open MPI refuses to hand on what is not set. Empty means the same as not set.
        result.setdefault(LIBRARIES, "")
    names = matching(result, [*forward, *ALWAYS_FORWARDED])
    # Hydra hands on all of its environment; Open MPI what this list names.
    given = result.get("OMPI_MCA_mca_base_env_list", "")
    if not (setting.list_beside_x or forward or given):
        return result
    result["OMPI_MCA_mca_base_env_list"] = ";".join(dict.fromkeys([*filter(None, given.split(";")), *names]))
    return result


def matching(environ: Mapping[str, str], patterns: Iterable[str]) -> list[str]:
    """The variables that are set and asked for, by name or by a beginning as in `NCCL_*`."""
    found: list[str] = []
    for pattern in patterns:
        if pattern.endswith("*"):
            found += sorted(name for name in environ if name.startswith(pattern[:-1]) and name not in SECRETS)
        elif pattern in environ and pattern not in SECRETS:
            found.append(pattern)
    return list(dict.fromkeys(found))


def with_shim_first(path: str, shim: str) -> str:
    directory = shim.rpartition("/")[0]
    return path if path.partition(":")[0] == directory else f"{directory}:{path}"


def _ours(setting: Setting) -> dict[str, str]:
    found = {
        # Open MPI 4, then 5, which reads none of the older names.
        "OMPI_MCA_orte_default_hostfile": setting.openmpi_hostfile,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "1",
        "OMPI_MCA_plm_rsh_agent": setting.shim,
        "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": setting.openmpi_hostfile,
        "PRTE_MCA_prte_keep_fqdn_hostnames": "1",
        "PRTE_MCA_plm_ssh_agent": setting.shim,
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        # Open MPI 5's daemons fork from threads, and forget a rank that ends before its thread has noted the pid:
        # `mpirun hostname` then waits for ever. Without the threads there is no such gap.
        "PRTE_MCA_odls_base_max_threads": "0",
        "HYDRA_HOST_FILE": setting.hydra_hostfile,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": setting.shim,
        "I_MPI_HYDRA_HOST_FILE": setting.hydra_hostfile,
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": setting.shim,
        # -1 is its word for "choose yourself", 0 for "no tree".
        "I_MPI_HYDRA_BRANCH_COUNT": "0",
        # Intel's takes the names of a hostfile and not its numbers. Where they differ, nothing says it.
        "I_MPI_PERHOST": setting.ranks_a_host,
        "HYDRA_IFACE": setting.interface,
        "I_MPI_HYDRA_IFACE": setting.interface,
    }
    if setting.root:  # in a container that is nothing to be asked about
        found |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        found |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return found
