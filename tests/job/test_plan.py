"""The objects of a job, compared as data with what users of v2beta1 know."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mpiboot.job.check.advice import advice
from mpiboot.job.plan.plan import plan as make

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.job.model import Job
    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.plan.ssh_material import SshMaterial

UID = "0b5c1d6e-0000-4000-8000-000000000001"
OBJECT_LABELS = {
    "app": "pi",
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-name": "pi",
}


def pod_labels(role: str, index: str | None = None) -> dict[str, str]:
    return {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/job-role": role,
        "group-name": "kubeflow.org",
        "mpi-job-name": "pi",
        "mpi-job-role": role,
        "group_name": "kubeflow.org",
        "mpi_job_name": "pi",
        "mpi_role_type": role,
        **({} if index is None else {"training.kubeflow.org/replica-index": index, "replica-index": index}),
    }


def test_the_secret_holds_both_pairs(planned: Callable[..., Plan]) -> None:
    secret = planned("pi.yaml").secret
    assert {key: secret[key] for key in ("apiVersion", "kind", "type", "metadata")} == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/ssh-auth",
        "metadata": {"name": "pi-ssh", "namespace": "default", "labels": OBJECT_LABELS},
    }
    assert {key: b64decode(value).decode() for key, value in secret["data"].items()} == {
        "ssh-privatekey": "client private\n",
        "ssh-publickey": "ssh-ed25519 CLIENT client\n",
        "host-privatekey": "host private\n",
        "host-publickey": "ssh-ed25519 HOST host\n",
        "known_hosts": "* ssh-ed25519 HOST\n",
        "token": "secret token",
    }


def test_config_map_and_service(planned: Callable[..., Plan]) -> None:
    plan = planned("pi.yaml", cluster_domain="cluster.example")
    metadata = {"namespace": "default", "labels": OBJECT_LABELS}
    assert (plan.config_map["kind"], plan.config_map["metadata"]) == ("ConfigMap", {"name": "pi-config", **metadata})
    assert plan.config_map["data"].keys() == {"hostfile", "discover_hosts.sh", "wait_for_workers.sh"}
    assert plan.config_map["data"]["hostfile"] == (
        "pi-worker-0.pi.default.svc.cluster.example slots=2\npi-worker-1.pi.default.svc.cluster.example slots=2\n"
    )
    assert plan.service == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "pi", **metadata},
        "spec": {
            "clusterIP": "None",
            "selector": {
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/job-name": "pi",
            },
            "publishNotReadyAddresses": True,  # a user's probe may call a worker ready long after its sshd listens
        },
    }


def test_a_worker_pod(planned: Callable[..., Plan]) -> None:
    workers = planned("pi.yaml").workers
    assert [worker["metadata"]["name"] for worker in workers] == ["pi-worker-0", "pi-worker-1"]
    assert workers[1] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "pi-worker-1",
            "namespace": "default",
            "labels": pod_labels("worker", "1"),
            "annotations": {"sidecar.istio.io/inject": "false"},
        },
        "spec": {
            "hostname": "pi-worker-1",
            "subdomain": "pi",
            "restartPolicy": "Never",
            "dnsConfig": {"searches": ["pi.default.svc.cluster.local"]},
            "containers": [
                {
                    "image": "mpioperator/mpi-pi:openmpi",
                    "name": "mpi-worker",
                    "securityContext": {"runAsUser": 1000},
                    "command": ["/usr/sbin/sshd"],
                    "args": ["-De", "-f", "/home/mpiuser/.sshd_config"],
                    "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
                    "env": [
                        {"name": "K_MPI_JOB_ROLE", "value": "worker"},
                        {"name": "MPIBOOT_JOB", "value": "default/pi"},
                        {"name": "MPIBOOT_SSH_DIR", "value": "/home/mpiuser/.ssh"},
                        {"name": "MPIBOOT_INDEX", "value": "1"},
                    ],
                    "volumeMounts": [{"name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh"}],
                }
            ],
            "volumes": [
                {
                    "name": "ssh-auth",
                    "secret": {
                        "secretName": "pi-ssh",
                        "defaultMode": 0o444,
                        "items": [
                            {"key": "host-privatekey", "path": "id_rsa", "mode": 0o444},
                            {"key": "host-publickey", "path": "id_rsa.pub", "mode": 0o444},
                            {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o444},
                        ],
                    },
                }
            ],
        },
    }


def test_the_launcher_job(planned: Callable[..., Plan]) -> None:
    launcher = planned("pi.yaml").launcher
    container = launcher["spec"]["template"]["spec"]["containers"][0]
    assert launcher == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "pi-launcher", "namespace": "default", "labels": OBJECT_LABELS},
        "spec": {
            "backoffLimit": 4,
            "activeDeadlineSeconds": 3600,
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {
                    "labels": {"team": "maths", **pod_labels("launcher")},
                    "annotations": {"sidecar.istio.io/inject": "false"},
                },
                "spec": {
                    "hostname": "pi-launcher",
                    "subdomain": "pi",
                    "restartPolicy": "OnFailure",
                    "containers": [
                        {
                            "image": "mpioperator/mpi-pi:openmpi",
                            "name": "mpi-launcher",
                            "securityContext": {"runAsUser": 1000},
                            "command": ["/bin/sh", "/etc/mpi/wait_for_workers.sh", "mpirun"],
                            "args": ["-n", "4", "/home/mpiuser/pi"],
                            "env": container["env"],
                            "volumeMounts": [
                                {"name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh"},
                                {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
                                {"name": "mpiboot-addresses", "mountPath": "/etc/mpiboot"},
                            ],
                        }
                    ],
                    "volumes": [
                        {
                            "name": "ssh-auth",
                            "secret": {
                                "secretName": "pi-ssh",
                                "defaultMode": 0o444,
                                # The user's sshd has keys of its image: nothing to know its hosts by.
                                "items": [
                                    {"key": "ssh-privatekey", "path": "id_rsa", "mode": 0o444},
                                    {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o444},
                                    {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o444},
                                ],
                            },
                        },
                        {
                            "name": "mpi-job-config",
                            "configMap": {
                                "name": "pi-config",
                                "items": [
                                    {"key": "hostfile", "path": "hostfile", "mode": 0o444},
                                    {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
                                    {"key": "wait_for_workers.sh", "path": "wait_for_workers.sh", "mode": 0o555},
                                ],
                            },
                        },
                        {
                            "name": "mpiboot-addresses",
                            "downwardAPI": {
                                "items": [
                                    {
                                        "path": "addresses",
                                        "fieldRef": {"fieldPath": "metadata.annotations['mpiboot.dev/addresses']"},
                                    }
                                ]
                            },
                        },
                    ],
                },
            },
        },
    }


def test_the_time_to_live_is_not_given_to_the_launcher_job(planned: Callable[..., Plan]) -> None:
    plan = planned("pi.yaml")
    assert plan.job.run_policy.ttl_seconds_after_finished == 60
    assert "ttlSecondsAfterFinished" not in plan.launcher["spec"]


def test_a_job_that_a_server_knows_owns_its_objects(planned: Callable[..., Plan]) -> None:
    plan = planned("root-working-launcher.yaml")
    objects: list[Any] = [plan.secret, plan.config_map, plan.service, *plan.workers, plan.launcher]
    owner = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "name": "bench",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert [found["metadata"]["ownerReferences"] for found in objects] == [[owner]] * 6


def test_a_launcher_that_works(planned: Callable[..., Plan]) -> None:
    plan = planned("root-working-launcher.yaml")
    workers = "bench-worker-0.bench.hpc.svc:1\nbench-worker-1.bench.hpc.svc:1\n"
    assert plan.config_map["data"]["hostfile"] == f"bench-launcher.bench.hpc.svc:1\n{workers}"
    # By its long name an MPI runtime does not know its own host and would log in to it.
    assert plan.config_map["data"]["hostfile.launcher"] == f"bench-launcher:1\n{workers}"
    template = plan.launcher["spec"]["template"]
    items = template["spec"]["volumes"][1]["configMap"]["items"]
    assert items[0] == {"key": "hostfile.launcher", "path": "hostfile", "mode": 0o444}
    indexes = [pod["metadata"]["labels"]["training.kubeflow.org/replica-index"] for pod in (template, *plan.workers)]
    assert indexes == ["0", "1", "2"]
    assert plan.service["spec"]["publishNotReadyAddresses"] is True
    assert plan.launcher["spec"]["suspend"] is True


def test_on_the_hosts_network_names_still_resolve(planned: Callable[..., Plan]) -> None:
    plan = planned("root-working-launcher.yaml")
    pods = [plan.launcher["spec"]["template"], *plan.workers]
    assert [pod["spec"]["dnsPolicy"] for pod in pods] == ["ClusterFirstWithHostNet"] * 3
    # What the user searches comes first, and stays.
    assert plan.workers[0]["spec"]["dnsConfig"]["searches"] == ["example.org", "bench.hpc.svc.cluster.local"]
    assert plan.launcher["spec"]["template"]["spec"]["dnsConfig"]["searches"] == ["example.org"]


def test_a_queues_own_gate_stays_last(planned: Callable[..., Plan], material: SshMaterial) -> None:
    plan = planned("root-working-launcher.yaml")
    gate = replace(plan.job, annotations={**plan.job.annotations, "mpiboot.dev/launch": "gate"})

    def gates(job: Job) -> list[dict[str, str]]:
        found: list[dict[str, str]] = make(job, material).launcher["spec"]["template"]["spec"]["schedulingGates"]
        return found

    assert gates(plan.job) == [{"name": "kueue.x-k8s.io/topology"}]
    assert gates(gate) == [{"name": "mpiboot.dev/workers"}, {"name": "kueue.x-k8s.io/topology"}]


def test_unquoted_numbers_become_the_text_that_was_meant(planned: Callable[..., Plan]) -> None:
    template = planned("odd.yaml").launcher["spec"]["template"]
    container = template["spec"]["containers"][0]
    assert container["args"] == ["-n", "2", "./app", "0.5"]
    assert container["env"][0] == {"name": "THREADS", "value": "4"}
    assert template["metadata"]["labels"]["version"] == "1"
    assert template["spec"]["nodeSelector"] == {"gpu": "true"}


def test_the_replicas_restart_policy_wins_and_says_so(planned: Callable[..., Plan]) -> None:
    plan = planned("odd.yaml")
    assert plan.launcher["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
    warning = advice(plan.arrangement)[0]
    assert (warning.reason, warning.level) == ("SetPodTemplateRestartPolicy", "warning")
    assert warning.text() == (
        "spec.mpiReplicaSpecs.Launcher.template.spec.restartPolicy: "
        "Restart policy in pod template overridden by restart policy in replica spec"
    )


def test_a_launcher_alone(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small({"spec.mpiReplicaSpecs.Worker": ..., "spec.runLauncherAsWorker": True, "spec.slotsPerWorker": 4})
    assert plan.workers == ()
    assert plan.config_map["data"]["hostfile"] == "pi-launcher.pi.default.svc slots=4\n"
    assert (plan.arrangement.launch_mode, advice(plan.arrangement)) == ("off", ())


def test_the_user_decides_about_a_sidecar(plan_small: Callable[..., Plan]) -> None:
    key = "sidecar.istio.io/inject"
    for where in ("annotations", "labels"):
        metadata = {where: {key: "true"}}
        plan = plan_small({"Launcher.template.metadata": metadata, "Worker.template.metadata": metadata})
        for pod in (plan.launcher["spec"]["template"], plan.workers[0]):
            assert pod["metadata"][where][key] == "true"
            assert where == "annotations" or key not in pod["metadata"]["annotations"]


def test_a_volume_name_that_the_user_has_is_not_used_twice(plan_small: Callable[..., Plan]) -> None:
    plan = plan_small({"Worker.template.spec.volumes": [{"name": "ssh-auth", "emptyDir": {}}]})
    spec = plan.workers[0]["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["ssh-auth", "mpiboot-ssh-auth-1"]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "mpiboot-ssh-auth-1", "mountPath": "/root/.ssh"}]


def test_what_the_user_mounts_himself_stays(plan_small: Callable[..., Plan]) -> None:
    mine = {"name": "mine", "mountPath": "/root/.ssh"}
    plan = plan_small({"Worker.template.spec.containers.0.volumeMounts": [mine]})
    assert plan.workers[0]["spec"]["containers"][0]["volumeMounts"] == [mine]


def test_only_the_main_container_is_changed(plan_small: Callable[..., Plan]) -> None:
    sidecar = {"name": "log", "image": "me/log"}
    plan = plan_small({
        "Worker.template.spec.containers": [{"name": "worker", "image": "me/app"}, sidecar],
    })
    assert plan.workers[0]["spec"]["containers"][1] == sidecar
