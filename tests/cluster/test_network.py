"""The end of a node removes the iptables rules of kube-proxy, the kubelet and our pods, and no other rule."""

from __future__ import annotations

from cluster.network import removal

NAT = r"""
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CNI-0a1b2c ACCEPT [0:0]
:CNI-ffffff ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-ERIFXISQEP7F7OF4 - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A POSTROUTING -s 10.213.0.4/32 -m comment --comment "name: \"mpiboot\" id: \"e1\"" -j CNI-0a1b2c
-A POSTROUTING -s 10.88.0.4/32 -m comment --comment "name: \"podman\" id: \"e2\"" -j CNI-ffffff
-A CNI-0a1b2c -d 10.213.0.0/16 -m comment --comment "name: \"mpiboot\" id: \"e1\"" -j ACCEPT
-A CNI-ffffff -d 10.88.0.0/16 -m comment --comment "name: \"podman\" id: \"e2\"" -j ACCEPT
-A DOCKER -i docker0 -j RETURN
-A KUBE-SERVICES -d 10.214.0.1/32 -p tcp -j KUBE-SVC-ERIFXISQEP7F7OF4
COMMIT
"""

FILTER = """
*filter
:FORWARD DROP [0:0]
-A FORWARD -o mpiboot0 -m comment --comment mpiboot -j ACCEPT
-A FORWARD -i docker0 -m comment --comment mpiboot-images -j ACCEPT
-A FORWARD -j DOCKER-USER
COMMIT
"""


def test_our_chains_are_removed_as_a_whole_and_rules_in_other_chains_one_by_one() -> None:
    chains = ["CNI-0a1b2c", "KUBE-SERVICES", "KUBE-SVC-ERIFXISQEP7F7OF4"]
    assert removal(NAT.splitlines()) == [
        '-D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
        r'-D POSTROUTING -s 10.213.0.4/32 -m comment --comment "name: \"mpiboot\" id: \"e1\"" -j CNI-0a1b2c',
        *(f"-F {name}" for name in chains),
        *(f"-X {name}" for name in chains)]


def test_only_the_rule_of_our_bridge_is_removed_from_the_filter_table() -> None:
    assert removal(FILTER.splitlines()) == ["-D FORWARD -o mpiboot0 -m comment --comment mpiboot -j ACCEPT"]


def test_tables_without_our_rules_are_not_touched() -> None:
    assert removal(["*nat", ":PREROUTING ACCEPT [0:0]", "-A PREROUTING -j DOCKER", "COMMIT"]) == []
