"""The programs that are built: from which Go modules, in which version."""

from __future__ import annotations

from dataclasses import dataclass

from .home import CACHE

KUBERNETES = "v1.34.4"  # 1.34 is the last that works with containerd 1.6 and cgroup v1, which many machines have


@dataclass(frozen=True)
class Programs:
    """The programs of one `go build`."""

    module: str
    version: str
    packages: dict[str, str]  # program -> package inside the module
    takes: str  # how long the build takes on two cores, in a message

    def missing(self) -> list[str]:
        """The programs that are not built yet."""
        return [name for name in self.packages if not (CACHE / "programs" / self.version / name).exists()]

    def __str__(self) -> str:
        return f"{', '.join(self.packages)} {self.version}"


def _kubernetes(*names: str, takes: str) -> Programs:
    return Programs("k8s.io/kubernetes", KUBERNETES, {name: f"cmd/{name}" for name in names}, takes)


API = _kubernetes("kube-apiserver", takes="5 minutes")
CLIENT = _kubernetes("kubectl", takes="half a minute")
NODE = _kubernetes("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", takes="5 minutes")
DNS = Programs("github.com/coredns/coredns", "v1.14.7", {"coredns": ""}, "4 minutes")
FAKE_NODES = Programs("sigs.k8s.io/kwok", "v0.7.0", {"kwok": "cmd/kwok"}, "2 minutes")
# The operator that bench/ compares with ours. No test needs it.
PEER = Programs("github.com/kubeflow/mpi-operator", "v0.8.2", {"mpi-operator": "cmd/mpi-operator"}, "2 minutes")

# Tests install deploy/chart with it.
HELM = Programs("helm.sh/helm/v3", "v3.19.2", {"helm": "cmd/helm"}, "3 minutes")

SIZES = {"api": (API, CLIENT), "node": (API, CLIENT, NODE, DNS), "bench": (FAKE_NODES, PEER), "helm": (HELM,)}


def program(name: str) -> str:
    """The path of a program of the tables above, even if it is not built yet."""
    for programs in (API, CLIENT, NODE, DNS, FAKE_NODES, PEER, HELM):
        if name in programs.packages:
            return str(CACHE / "programs" / programs.version / name)
    raise KeyError(name)
