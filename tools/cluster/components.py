"""The programs of a node except the API server and containerd: their configuration and command lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import network, ports, processes
from .versions import program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .certificates import Authority
    from .home import Home

NAME = "mpiboot-node"
PODS = 250  # the kubelet's limit; the default of 110 is too low for one benchmark

COREFILE = f"""\
.:53 {{
    bind {network.DNS}
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig KUBECONFIG mpiboot
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    forward . /etc/resolv.conf {{
        max_concurrent 1000
    }}
    cache 30 {{
        disable success cluster.local
        disable denial cluster.local
    }}
    loadbalance
}}
"""


def start(home: Home, authority: Authority, server: str) -> None:
    """Start all of them without waiting: each retries until the API server has what it needs."""
    _controllers(home, authority, server)
    _kubelet(home, authority, server)
    _proxy(home, authority, server)
    _dns(home, authority, server)


def _controllers(home: Home, authority: Authority, server: str) -> None:
    account = _kubeconfig(home, authority, server, "system:kube-controller-manager")
    processes.start(home, "kube-controller-manager", [
        program("kube-controller-manager"), f"--kubeconfig={account}", "--leader-elect=false", "--secure-port=0",
        "--use-service-account-credentials=true", f"--root-ca-file={authority.certificate}",
        f"--service-account-private-key-file={home.certificates / 'service-accounts.key'}",
        # With the default of 20 requests a second, a benchmark of hundreds of jobs would measure that limit.
        "--kube-api-qps=300", "--kube-api-burst=500"])
    account = _kubeconfig(home, authority, server, "system:kube-scheduler")
    processes.start(home, "kube-scheduler", [
        program("kube-scheduler"), f"--kubeconfig={account}", "--leader-elect=false", "--secure-port=0"])


def _kubelet(home: Home, authority: Authority, server: str) -> None:
    account = _kubeconfig(home, authority, server, f"system:node:{NAME}", "system:nodes")
    port, = ports.free(network.NODE, 1)
    file = _configuration(home, "kubelet", {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": network.NODE, "port": port, "healthzPort": 0, "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(authority.certificate)}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs", "failSwapOn": False, "failCgroupV1": False, "oomScoreAdj": 0,
        "containerRuntimeEndpoint": f"unix://{home.containerd_socket}",
        "clusterDNS": [network.DNS], "clusterDomain": "cluster.local",
        "maxPods": PODS, "serializeImagePulls": False,
        "podLogsDir": str(home.path / "pod-logs"), "volumePluginDir": str(home.path / "volume-plugins"),
        # The kubelet must not evict a test's pods or remove its images because this machine's disk is full.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                         "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99})
    processes.start(home, "kubelet", [
        program("kubelet"), f"--config={file}", f"--kubeconfig={account}", f"--root-dir={home.kubelet}",
        f"--cert-dir={home.certificates / 'kubelet'}", f"--hostname-override={NAME}", f"--node-ip={network.NODE}"])


def _proxy(home: Home, authority: Authority, server: str) -> None:
    account = _kubeconfig(home, authority, server, "system:kube-proxy")
    health, metrics = ports.free(network.NODE, 2)
    unlimited = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    file = _configuration(home, "kube-proxy", {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
        "clientConnection": {"kubeconfig": str(account)}, "clusterCIDR": network.PODS, "hostnameOverride": NAME,
        "healthzBindAddress": f"{network.NODE}:{health}", "metricsBindAddress": f"{network.NODE}:{metrics}",
        "oomScoreAdj": 0, "iptables": {"localhostNodePorts": False},
        "conntrack": unlimited})  # kube-proxy must not change this machine's limits
    processes.start(home, "kube-proxy", [program("kube-proxy"), f"--config={file}"])


def _dns(home: Home, authority: Authority, server: str) -> None:
    account = _kubeconfig(home, authority, server, "mpiboot-dns", "system:masters")
    file = home.path / "Corefile"
    file.write_text(COREFILE.replace("KUBECONFIG", str(account)))
    processes.start(home, "coredns", [program("coredns"), "-conf", str(file)])


def _kubeconfig(home: Home, authority: Authority, server: str, user: str, group: str | None = None) -> Path:
    return authority.kubeconfig(home.certificates / f"{user.replace(':', '-')}.kubeconfig", server, user, group)


def _configuration(home: Home, name: str, content: Mapping[str, object]) -> Path:
    path = home.path / f"{name}.json"
    path.write_text(json.dumps(content, indent=1))
    return path
