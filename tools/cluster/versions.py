"""The programs that are built: from which Go modules, in which version."""

from __future__ import annotations

from dataclasses import dataclass, field

from .home import CACHE

KUBERNETES = "v1.34.4"  # 1.34 is the last that works with containerd 1.6 and cgroup v1, which many machines have


@dataclass(frozen=True)
class Programs:
    """The programs of one `go build`."""

    module: str
    version: str
    packages: dict[str, str]  # program -> package inside the module
    takes: str  # how long the build takes on two cores, in a message
    replaced: dict[str, str] = field(default_factory=dict)  # modules that the build needs in another version
    files: tuple[str, ...] = ()  # other files of the module that tests need, by their paths in it

    def missing(self) -> list[str]:
        """The programs that are not built yet."""
        home = CACHE / "programs" / self.version
        files = (path.rpartition("/")[2] for path in self.files)
        return [name for name in (*self.packages, *files) if not (home / name).exists()]

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

# Gang schedulers. Volcano's module names a version of its API that was not published.
_VOLCANOS = "config/crd/volcano/bases"
VOLCANO = Programs(
    "volcano.sh/volcano", "v1.14.1", {"vc-scheduler": "cmd/scheduler"}, "2 minutes",
    replaced={"volcano.sh/apis": "v1.14.0"},
    files=tuple(
        f"{_VOLCANOS}/{name}.yaml"
        for name in (
            "scheduling.volcano.sh_podgroups", "scheduling.volcano.sh_queues", "nodeinfo.volcano.sh_numatopologies",
            "topology.volcano.sh_hypernodes", "shard.volcano.sh_nodeshards",
        )
    ),
)
SCHEDULER_PLUGINS = Programs(
    "sigs.k8s.io/scheduler-plugins", "v0.33.5", {"plugins-scheduler": "cmd/scheduler"}, "2 minutes",
    files=tuple(f"config/crd/bases/scheduling.x-k8s.io_{name}.yaml" for name in ("podgroups", "elasticquotas")),
)

ALL = (API, CLIENT, NODE, DNS, FAKE_NODES, PEER, HELM, VOLCANO, SCHEDULER_PLUGINS)
SIZES = {
    "api": (API, CLIENT), "node": (API, CLIENT, NODE, DNS), "bench": (FAKE_NODES, PEER), "helm": (HELM,),
    "schedulers": (VOLCANO, SCHEDULER_PLUGINS),
}


def program(name: str) -> str:
    """The path of a program of the tables above, even if it is not built yet."""
    for programs in ALL:
        if name in programs.packages:
            return str(CACHE / "programs" / programs.version / name)
    raise KeyError(name)
