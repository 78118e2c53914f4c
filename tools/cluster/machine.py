"""What a node changes on the machine outside its folder: recorded before it starts, undone after its end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from . import network
from .waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .home import Home

CGROUPS = Path("/sys/fs/cgroup")
PODS = "kubepods"  # the kubelet's cgroup, at the top of each hierarchy
# The kubelet and the CNI plugins always make these folders. They are removed if they did not exist before.
FOLDERS = (Path("/var/lib/kubelet"), Path("/var/lib/cni"), Path("/var/log/containers"), Path("/var/log/pods"),
           Path("/etc/kubernetes"), Path("/usr/libexec/kubernetes"), Path("/opt/containerd"))
# The kubelet and kube-proxy change these kernel settings.
SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
            "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
            "net/ipv4/conf/all/route_localnet", "net/ipv4/vs/conntrack", "net/bridge/bridge-nf-call-iptables",
            "net/netfilter/nf_conntrack_max")


def record(home: Home) -> None:
    """Write the machine's settings and folders to a file, before anything starts."""
    settings = {}
    for name in SETTINGS:
        with contextlib.suppress(OSError):
            settings[name] = (Path("/proc/sys") / name).read_text().strip()
    folders = [str(folder) for folder in FOLDERS if folder.exists()]
    _record_file(home).write_text(json.dumps({"settings": settings, "folders": folders}, indent=1))


def remove(home: Home) -> None:
    """Undo what the node changed: processes of pods, cgroups, mounts, settings, folders, results of the CNI plugins."""
    _end_pods()
    unmount(home.path)
    try:
        before = json.loads(_record_file(home).read_text())
    except FileNotFoundError:
        return
    for name, value in before["settings"].items():
        path = Path("/proc/sys") / name
        with contextlib.suppress(OSError):
            if path.read_text().strip() != value:
                path.write_text(value)
    _remove_results(Path("/var/lib/cni/results"))
    for folder in FOLDERS:
        if str(folder) not in before["folders"]:
            shutil.rmtree(folder, ignore_errors=True)
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(home.path):
            link.unlink(missing_ok=True)


def _remove_results(results: Path) -> None:
    """Remove what the CNI plugins noted of the node's pods. NETWORK-ID-INTERFACE: `cni-loopback` has the same ID."""
    for result in results.glob(f"{network.NAME}-*"):
        sandbox = result.name.removeprefix(f"{network.NAME}-").rpartition("-")[0]
        (results / f"cni-loopback-{sandbox}-lo").unlink(missing_ok=True)
        result.unlink(missing_ok=True)


def mounts(below: Path) -> list[str]:
    """The mount points in a folder, the last mounted first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in reversed(points) if Path(point.replace("\\040", " ")).is_relative_to(below)]


def unmount(below: Path) -> None:
    """Unmount everything below a folder. A volume that is still in use is detached."""
    for point in mounts(below):
        subprocess.run(["umount", "--lazy", point.replace("\\040", " ")], capture_output=True)


def pod_cgroups() -> list[Path]:
    """The kubelet's cgroups at the top of the hierarchies (cgroup v1 has several, v2 one)."""
    return [path for path in (CGROUPS / PODS, *CGROUPS.glob(f"*/{PODS}")) if path.is_dir()]


def _end_pods() -> None:
    def ended() -> bool:
        left = [pid for top in pod_cgroups() for folder in _tree(top) for pid in _members(folder)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_for("the end of the pods' processes", ended, 20)
    for top in pod_cgroups():
        for folder in _tree(top):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _members(cgroup: Path) -> list[int]:
    try:
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    except OSError:  # it was removed in the meantime
        return []


def _tree(top: Path) -> Iterator[Path]:
    for folder, _, _ in os.walk(top, topdown=False):
        yield Path(folder)


def _record_file(home: Home) -> Path:
    return home.path / "machine-before.json"
