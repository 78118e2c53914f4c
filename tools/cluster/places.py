"""Every path that the clusters use: what is built once is shared, what runs has a home of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Outside the work tree: a second clone finds what the first one built.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot" / "cluster"


@dataclass(frozen=True)
class Home:
    """The folder of one running cluster. Nothing of it lies elsewhere, so removing it leaves nothing behind."""

    path: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; it appears only when the API server answers."""
        return self.path / "kubeconfig"

    @property
    def record(self) -> Path:
        """Which processes were started."""
        return self.path / "processes.json"

    @property
    def certificates(self) -> Path:
        """Keys and certificates; private."""
        return self.path / "pki"

    @property
    def logs(self) -> Path:
        """One file a process."""
        return self.path / "logs"

    @property
    def etcd(self) -> Path:
        """Where etcd keeps its data."""
        return self.path / "etcd"

    @property
    def containerd(self) -> Path:
        """Root and state of the node's own containerd."""
        return self.path / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Where that containerd listens; the machine's own is another."""
        return self.containerd / "containerd.sock"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root directory: volumes are mounted below."""
        return self.path / "kubelet"


# The API server alone, for somebody at a terminal; tests start their own in temporary folders.
API = Home(CACHE / "api")
# The whole node changes the machine (interfaces, iptables, cgroups), so there is one a machine.
NODE = Home(CACHE / "node")
