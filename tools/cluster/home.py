"""Every folder that the clusters use: all share the cache of programs, and each running cluster has its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Outside the work tree, so that a second clone uses what the first one built.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot" / "cluster"


@dataclass(frozen=True)
class Home:
    """The folder of one running cluster. All its files are here, so removing the folder leaves nothing behind."""

    path: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; it exists only once the API server answers."""
        return self.path / "kubeconfig"

    @property
    def record(self) -> Path:
        """The processes that were started."""
        return self.path / "processes.json"

    @property
    def certificates(self) -> Path:
        """Keys and certificates; only the owner can read them."""
        return self.path / "pki"

    @property
    def logs(self) -> Path:
        """The logs, one file a process."""
        return self.path / "logs"

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.path / "etcd"

    @property
    def containerd(self) -> Path:
        """Root and state of the node's own containerd."""
        return self.path / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """The socket of that containerd; the machine's containerd has another."""
        return self.containerd / "containerd.sock"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root directory. Volumes are mounted below it."""
        return self.path / "kubelet"


# The API server alone, for a developer at a terminal. Tests start their own in temporary folders.
API = Home(CACHE / "api")
# The node changes the machine (interfaces, iptables, cgroups), so there is only one a machine.
NODE = Home(CACHE / "node")
