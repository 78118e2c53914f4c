"""What the node adds to this machine's network, and how all of it is removed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from .errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .home import Home

NAME = "mpiboot"  # of the CNI network; its plugins write it into every rule that they add
BRIDGE = "mpiboot0"
PODS = "10.213.0.0/16"
# The node's address is the bridge's, not the machine's: a laptop that changes networks keeps its cluster, and other
# machines cannot reach it.
NODE = "10.213.0.1"
DNS = "169.254.20.10"
MTU = 1400  # virtual machines often have no larger one
FAMILIES = ("iptables", "ip6tables")
TABLES = ("filter", "nat", "mangle")
PROXY = re.compile(r"\bKUBE-[\w-]+")


def up(home: Home) -> None:
    """Make the bridge and the address of DNS, and allow the pods' packets: Docker drops packets of other bridges."""
    _ip("link", "add", BRIDGE, "mtu", str(MTU), "type", "bridge")
    _ip("addr", "add", f"{NODE}/16", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    _ip("addr", "add", f"{DNS}/32", "dev", "lo")
    for direction in ("-i", "-o"):
        _run(["iptables", "-w", "-I", "FORWARD", direction, BRIDGE, "-m", "comment", "--comment", NAME, "-j", "ACCEPT"])
    write_cni(home.path / "cni", home.path / "addresses")


def write_cni(folder: Path, addresses: Path) -> None:
    """Write the CNI configuration of the pods' network: the bridge, and addresses from a folder of our own."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"cniVersion": "0.4.0", "name": NAME, "plugins": [
        {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": True, "hairpinMode": True, "mtu": MTU,
         "ipam": {"type": "host-local", "dataDir": str(addresses), "routes": [{"dst": "0.0.0.0/0"}],
                  "ranges": [[{"subnet": PODS, "gateway": NODE}]]}}]}
    (folder / "10-mpiboot.conflist").write_text(json.dumps(content, indent=1))


def down() -> None:
    """Remove the bridge with all its interfaces, the address and the rules. It is no error if some are missing."""
    for arguments in (["link", "del", BRIDGE], ["addr", "del", f"{DNS}/32", "dev", "lo"]):
        subprocess.run(["ip", *arguments], capture_output=True)
    for family in FAMILIES:
        for table in TABLES:
            _remove_rules(family, table)


def foreign_kube_proxy() -> bool:
    """True when there are rules of a kube-proxy: with two on a machine, `down` could not distinguish their rules."""
    return any(PROXY.search(_saved(family, table)) for family in FAMILIES for table in TABLES)


def _remove_rules(family: str, table: str) -> None:
    script = removal(_saved(family, table).splitlines())
    if script:
        # One transaction that touches only these rules: Docker may change the same tables at this moment.
        _run([f"{family}-restore", "-w", "--noflush"], given="\n".join([f"*{table}", *script, "COMMIT", ""]))


def removal(saved: Iterable[str]) -> list[str]:
    """The lines for iptables-restore that remove kube-proxy's, the kubelet's and this network's rules and chains."""
    lines = list(saved)
    ours = [line for line in lines if line.startswith("-A") and (PROXY.search(line) or _of_network(line))]
    chains = {name for line in lines if line.startswith(":") for name in PROXY.findall(line)}
    chains |= {name for line in ours for name in re.findall(r"\bCNI-[\w-]+", line)}
    kept = [line for line in lines if line.startswith("-A") and line not in ours]
    chains = {name for name in chains if not any(name in line.split() for line in kept)}
    loose = [f"-D {line.removeprefix('-A ')}" for line in ours if line.split()[1] not in chains]
    return [*loose, *(f"-F {name}" for name in sorted(chains)), *(f"-X {name}" for name in sorted(chains))]


def _of_network(line: str) -> bool:
    return f'name: \\"{NAME}\\"' in line or f"--comment {NAME} " in line


def _saved(family: str, table: str) -> str:
    if not shutil.which(f"{family}-save", path="/usr/sbin:/sbin:/usr/bin"):
        return ""
    done = subprocess.run([f"{family}-save", "-t", table], text=True, capture_output=True)
    return done.stdout if done.returncode == 0 else ""


def _ip(*arguments: str) -> None:
    _run(["ip", *arguments])


def _run(command: list[str], given: str | None = None) -> None:
    done = subprocess.run(command, input=given, text=True, capture_output=True)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.returncode}")
