"""The node runs what jobs need: pods, names of headless services, images of the Docker engine, tokens, limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cluster.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.fixtures import Cluster


def _pod(name: str, image: str, script: str, **more: object) -> str:
    container = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
                 "command": ["bash", "-c", script], "securityContext": {"runAsUser": 1000}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
                       "spec": {"restartPolicy": "Never", "containers": [container], **more}})


def _output(cluster: Cluster, namespace: str, name: str) -> str:
    def phase() -> str:
        return cluster.kubectl("get", "pod", name, "-n", namespace, "-o", "jsonpath={.status.phase}")

    wait_for(f"the end of {name}", lambda: phase() in {"Succeeded", "Failed"}, 60)
    printed = cluster.kubectl("logs", name, "-n", namespace)
    assert phase() == "Succeeded", printed
    return printed


def test_an_image_of_the_docker_engine_runs(cluster: Cluster, namespace: str, image: Callable[[str], str]) -> None:
    script = "id -u; mpirun --version | head -1; exit 0"
    cluster.kubectl("create", "-n", namespace, "-f", "-", given=_pod("runs", cluster.load(image("openmpi")), script))
    assert _output(cluster, namespace, "runs").startswith("1000\nmpirun (Open MPI)")


def test_the_name_of_a_pod_of_a_headless_service_resolves(
    cluster: Cluster, namespace: str, image: Callable[[str], str]
) -> None:
    tag = cluster.load(image("openmpi"))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "group"},
               "spec": {"clusterIP": "None", "selector": {"app": "named"}, "publishNotReadyAddresses": True}}
    cluster.kubectl("create", "-n", namespace, "-f", "-", given=json.dumps(service))
    named = _pod("named", tag, "exec sleep 600", hostname="first", subdomain="group", terminationGracePeriodSeconds=0)
    cluster.kubectl("create", "-n", namespace, "-f", "-", given=named)
    lookup = f"until getent hosts first.group.{namespace}.svc; do read -rt 0.2 < <(:) || true; done"
    cluster.kubectl("create", "-n", namespace, "-f", "-", given=_pod("asks", tag, lookup))
    address = _output(cluster, namespace, "asks").split()[0]
    assert address == cluster.kubectl("get", "pod", "named", "-n", namespace, "-o", "jsonpath={.status.podIP}")


def test_a_pod_reaches_the_api_server_with_its_token(
        cluster: Cluster, namespace: str, image: Callable[[str], str]) -> None:
    script = """
cd /var/run/secrets/kubernetes.io/serviceaccount
python3 - <<END
import ssl, urllib.request
request = urllib.request.Request("https://kubernetes.default.svc/version",
                                 headers={"Authorization": "Bearer " + open("token").read()})
print(urllib.request.urlopen(request, context=ssl.create_default_context(cafile="ca.crt")).status)
END"""
    cluster.kubectl("create", "-n", namespace, "-f", "-", given=_pod("asks", cluster.load(image("openmpi")), script))
    assert _output(cluster, namespace, "asks") == "200\n"


def test_a_restricted_namespace_refuses_a_root_pod(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    refused = cluster.try_kubectl("run", "root", "--image=none", "-n", namespace)
    assert "violates PodSecurity" in refused.stderr
