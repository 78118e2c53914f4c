"""The Debian packages that the clusters need, found by their programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import services
from debian import Need, how_to_install, install

from .errors import ClusterError

# program or file -> package
API = {"etcd": "etcd-server"}
NODE = {
    **API, "containerd": "containerd", "runc": "runc", "iptables": "iptables", "conntrack": "conntrack",
    "ethtool": "ethtool", "socat": "socat", "catatonit": "catatonit", "ip": "iproute2", "mount": "mount",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}


def missing(wanted: dict[str, str]) -> list[str]:
    """The packages whose programs are not on this machine."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return [package for program, package in wanted.items()
            if not (Path(program).exists() if program.startswith("/") else shutil.which(program, path=path))]


# Debian would start these services at the next boot; only their programs are needed.
SERVICES = {"etcd-server": "etcd.service", "containerd": "containerd.service"}


def provide(wanted: dict[str, str]) -> None:
    """Install what is missing, or raise an error that says how to."""
    absent = missing(wanted)
    need = Need("Kubernetes for the tests needs programs that this machine lacks", tuple(absent))
    if absent and not install(need):
        raise ClusterError(f"missing: {', '.join(absent)}; install it with: {how_to_install(absent)}")
    if services.here():
        units = [SERVICES[package] for package in absent if package in SERVICES]
        services.disable(units, "only the programs are needed, not the services")
