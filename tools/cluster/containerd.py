"""The node's own containerd. The machine's containerd, which may serve Docker, is not touched."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import processes
from .errors import ClusterError
from .waiting import wait_for

if TYPE_CHECKING:
    from .home import Home

PAUSE = "docker.io/mpiboot/pause:1"
NAMESPACE = "k8s.io"  # where the kubelet's images and containers live
COMES_UP_WITHIN = 30.0
LONGEST_SOCKET = 107  # bytes that the kernel allows

CONFIGURATION = """\
version = 2
root = {root}
state = {state}
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = {socket}
[plugins."io.containerd.internal.v1.opt"]
  path = {opt}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {pause}
  # Where lowering oom_score_adj is not allowed, runc would die with "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_hugetlb_controller = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = {snapshotter}
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = {cni}
"""


def up(home: Home) -> None:
    """Start it and wait until it answers."""
    socket = str(home.containerd_socket)
    if len(f"{socket}.ttrpc") > LONGEST_SOCKET:
        raise ClusterError(f"the path {socket} is too long for a socket; set XDG_CACHE_HOME to a shorter folder")
    home.containerd.mkdir(parents=True)
    texts = {"root": home.containerd / "root", "state": home.containerd / "state", "socket": socket,
             "opt": home.containerd / "opt", "pause": PAUSE, "snapshotter": _snapshotter(home.containerd),
             "cni": home.path / "cni"}
    file = home.containerd / "config.toml"
    file.write_text(CONFIGURATION.format(**{key: json.dumps(str(text)) for key, text in texts.items()}))
    processes.start(home, "containerd", ["containerd", "--config", str(file), "--log-level", "warn"])
    wait_for("the node's containerd", lambda: ctr(home, "version").returncode == 0, COMES_UP_WITHIN,
             meanwhile=lambda: processes.check(home))


def ctr(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run its command line, `ctr`."""
    return subprocess.run(ctr_command(home, *arguments), text=True, capture_output=True)


def ctr_command(home: Home, *arguments: str) -> list[str]:
    """The command and options of `ctr` for this containerd."""
    return ["ctr", "--address", str(home.containerd_socket), "--namespace", NAMESPACE, *arguments]


def down(home: Home) -> None:
    """End every container, its shim, and containerd. The kubelet has to end first: it would start them again."""
    found = {process.name: process for process in processes.recorded(home)}.get("containerd")
    if found and found.runs():
        tasks = ctr(home, "tasks", "ls", "-q").stdout.split()
        if tasks:
            ctr(home, "tasks", "rm", "--force", *tasks)
    # A broken containerd leaves shims. Their command lines have the path of its socket.
    for shim in _shims(home):
        for pid in (*_children(shim), shim):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + processes.ENDS_WITHIN
    while _shims(home) and time.monotonic() < deadline:
        time.sleep(0.05)


def _shims(home: Home) -> list[int]:
    """The processes that keep containers of this node. A zombie has no command line, so it does not count."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
            and f"-address\0{home.containerd_socket}\0" in _command_line(entry)]


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                found += [*_children(child), child]
    return found


def _snapshotter(folder: Path) -> str:
    """The snapshotter: plain copies inside a container, because an overlay cannot lie on another overlay."""
    longest, kind = "", ""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, type_, *_ = line.split()
        if len(point) > len(longest) and folder.is_relative_to(point):
            longest, kind = point, type_
    return "native" if kind == "overlay" else "overlayfs"
