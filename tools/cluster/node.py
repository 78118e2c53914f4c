"""A whole node, started in 8 seconds: everything that runs pods, from etcd to DNS. Its end leaves nothing behind."""

from __future__ import annotations

import os
import shutil

from mpiboot.kube.blocking import Client

from . import api, build, components, containerd, images, kind, machine, network, packages, processes, versions
from .certificates import Authority
from .errors import ClusterError
from .home import CACHE, NODE, Home
from .lock import only_one
from .waiting import wait_for

COMES_UP_WITHIN = 120.0  # seconds; 8 are usual, a busy machine needs more
LOCK = CACHE / "node.lock"
FAILED = CACHE / "failed-logs"
OK = 200


def provide() -> None:
    """Install and build what a node needs: Debian packages and programs."""
    if os.geteuid() != 0:
        raise ClusterError("a node needs root, because it makes containers, an interface and iptables rules; "
                           "run as root, or set KUBECONFIG to another cluster")
    packages.provide(packages.NODE)
    build.provide(*versions.SIZES["node"])
    build.tidy()


def up() -> bool:
    """True when this started the node, False when it ran already. A failed start leaves only its logs."""
    with only_one(LOCK, f"process {os.getpid()} starts the node"):
        if running(NODE):
            return False
        _remove()
        if kind.wanted() and kind.up(NODE):
            return True
        provide()
        if network.foreign_kube_proxy() or machine.pod_cgroups():
            raise ClusterError("another kubelet or kube-proxy runs on this machine; "
                               "set KUBECONFIG to its cluster, and the tests use that cluster")
        try:
            _start()
        except BaseException:
            _keep_logs()
            _remove()
            raise
        return True


def running(home: Home) -> bool:
    """True when its start was complete and all its processes still run."""
    if not home.kubeconfig.exists():
        return False
    return kind.answers(home) if kind.runs(home) else all(process.runs() for process in processes.recorded(home))


def host(home: Home) -> str:
    """The address at which the node's pods reach this machine."""
    return kind.gateway() if kind.runs(home) else network.NODE


def down() -> None:
    """End it and remove all that it left on this machine."""
    with only_one(LOCK, f"process {os.getpid()} ends the node"):
        _remove()


def _start() -> None:
    NODE.path.mkdir(mode=0o700, parents=True)
    machine.record(NODE)
    network.up(NODE)
    containerd.up(NODE)
    images.load_pause(NODE)
    authority = Authority(NODE.certificates)
    kubeconfig = api.start(NODE, authority, network.NODE)
    client = Client.of(kubeconfig)
    components.start(NODE, authority, client.server)
    wait_for("a node that is ready for pods", lambda: _ready(client), COMES_UP_WITHIN,
             meanwhile=lambda: processes.check(NODE))
    kubeconfig.rename(NODE.kubeconfig)


def _ready(client: Client) -> bool:
    """True when a pod would start now: the node is Ready and has no taint, and the service account exists."""
    answer = client.get(f"/api/v1/nodes/{components.NAME}")
    if answer.status != OK:
        return False
    node = answer.object
    conditions = node.get("status", {}).get("conditions", [])
    return (any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
            and not node["spec"].get("taints")
            and client.get("/api/v1/namespaces/default/serviceaccounts/default").status == OK)


def _remove() -> None:
    if kind.runs(NODE):
        kind.down(NODE)
    recorded = {process.name: process for process in processes.recorded(NODE)}
    if "kubelet" in recorded:
        processes.end(recorded["kubelet"])  # first, because it would restart what ends below
    containerd.down(NODE)
    processes.end_all(NODE)
    if NODE.path.exists():
        network.down()
        machine.remove(NODE)
    shutil.rmtree(NODE.path, ignore_errors=True)


def _keep_logs() -> None:
    shutil.rmtree(FAILED, ignore_errors=True)
    if NODE.logs.exists():
        shutil.copytree(NODE.logs, FAILED)

