"""Pods as containers: a field has its effect, or a warning names it."""

from __future__ import annotations

from typing import Any

import pytest

from mpiboot.engines.docker.podspec import ContainerSpec, container_spec
from mpiboot.engines.docker.security import Allowed
from mpiboot.engines.pods.objects import Objects
from mpiboot.job.errors import UserError

NOTHING = Allowed()
OBJECTS = Objects({
    ("Secret", "keys"): {"id_rsa": b"private", "token": b"t0ken"},
    ("ConfigMap", "conf"): {"hostfile": b"w0 slots=1\n", "A": b"1"},
})


def spec_of(
    container: dict[str, Any] | None = None, *, cpus: int | None = 4, allowed: Allowed = NOTHING, **pod: object
) -> tuple[ContainerSpec, list[str]]:
    manifest = {
        "metadata": {"name": "pi-worker-0", "namespace": "default", "labels": {"team": "x"}, "annotations": {}},
        "spec": {"containers": [{"name": "main", "image": "i", **(container or {})}], **pod},
    }
    return container_spec(manifest, "worker", 0, OBJECTS, allowed, machine_cpus=cpus)


def clean(container: dict[str, Any] | None = None, *, allowed: Allowed = NOTHING, **pod: object) -> ContainerSpec:
    spec, ignored = spec_of(container, cpus=4, allowed=allowed, **pod)
    assert ignored == []
    return spec


def test_the_command_of_the_image_is_used_where_the_pod_has_none() -> None:
    spec = clean()
    assert (spec.entrypoint, spec.command, spec.working_dir, spec.hostname) == (None, None, None, "pi-worker-0")


def test_command_and_args_see_the_environment() -> None:
    env = [{"name": "N", "value": "4"}, {"name": "M", "value": "$(N)2"}]
    spec = clean({"command": ["sh", "-c"], "args": ["echo $(M) $(UNKNOWN) $$(N) $HOME"], "env": env})
    assert spec.entrypoint == ["sh", "-c"]
    assert spec.command == ["echo 42 $(UNKNOWN) $(N) $HOME"]


def test_environment_from_everywhere() -> None:
    spec = clean({
        "envFrom": [{"configMapRef": {"name": "conf"}, "prefix": "C_"},
                    {"secretRef": {"name": "no", "optional": True}}],
        "env": [
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
            {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "TEAM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
            {"name": "GONE", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "no", "optional": True}}},
            {"name": "EMPTY"},
        ],
    })  # fmt: skip
    from_map = {"C_A": "1", "C_hostfile": "w0 slots=1\n"}
    assert spec.env == {"TOKEN": "t0ken", "ME": "pi-worker-0", "TEAM": "x", "EMPTY": "", **from_map}


def test_a_value_that_only_a_cluster_has_is_named_and_left_out() -> None:
    spec, ignored = spec_of({"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]})
    assert "IP" not in spec.env
    assert ignored == ["env IP from status.podIP"]


def test_an_object_of_the_cluster_is_an_error_that_names_it() -> None:
    with pytest.raises(UserError, match=r"pi-worker-0.*Secret 's3'"):
        spec_of({"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}}]})


def test_security_contexts_of_container_and_pod() -> None:
    own = {"runAsUser": 7, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}, "readOnlyRootFilesystem": True,
           "allowPrivilegeEscalation": False}  # fmt: skip
    whole = {"runAsUser": 5, "runAsGroup": 6, "fsGroup": 9, "supplementalGroups": [8], "runAsNonRoot": True,
             "seccompProfile": {"type": "Unconfined"},
             "sysctls": [{"name": "net.core.somaxconn", "value": "9"}]}  # fmt: skip
    security = clean({"securityContext": own}, securityContext=whole, allowed=Allowed(privileges=True)).security
    assert (security.user, security.groups, security.non_root, security.read_only) == ("7:6", (8, 9), True, True)
    assert (security.add, security.drop) == (("NET_ADMIN",), ("ALL",))
    assert security.options == ("no-new-privileges", "seccomp=unconfined")
    assert security.sysctls == (("net.core.somaxconn", "9"),)


@pytest.mark.parametrize(
    ("context", "asked"),
    [({"capabilities": {"add": ["ALL"]}}, "the capabilities ALL"),
     ({"capabilities": {"add": ["CAP_SYS_ADMIN", "CHOWN", "IPC_LOCK"]}}, "the capabilities CAP_SYS_ADMIN and IPC_LOCK"),
     ({"seccompProfile": {"type": "Unconfined"}}, r"no seccomp filter \(Unconfined\)")],
)  # fmt: skip
def test_more_privileges_than_usual_need_permission(context: dict[str, Any], asked: str) -> None:
    with pytest.raises(UserError, match=f"pi-worker-0.*{asked}; .*--allow-privileges"):
        spec_of({"securityContext": context})
    clean({"securityContext": context}, allowed=Allowed(privileges=True))
    assert clean({"securityContext": {"capabilities": {"add": ["CHOWN"]}}}).security.add == ("CHOWN",)


def test_limits_are_set_and_requests_ignored() -> None:
    resources = {"limits": {"cpu": "1500m", "memory": "6Gi", "nvidia.com/gpu": 2}, "requests": {"cpu": 64}}
    limits = clean({"resources": resources}).limits
    assert (limits.nano_cpus, limits.memory, limits.gpus) == (1_500_000_000, 6 * 2**30, 2)


def test_more_processors_than_the_machine_has_are_no_limit() -> None:
    spec, ignored = spec_of({"resources": {"limits": {"cpu": 8, "rdma/hca": 1}}})
    assert spec.limits.nano_cpus is None
    assert ignored == ["resources.limits.cpu 8 (the machine has 4)", "resources.limits.rdma/hca"]


def test_files_of_a_secret_with_their_modes_and_an_fs_group() -> None:
    secret = {"secretName": "keys", "defaultMode": 0o400, "items": [{"key": "id_rsa", "path": "id_rsa"},
              {"key": "token", "path": "a/b", "mode": 0o600}]}  # fmt: skip
    mounts = [{"name": "s", "mountPath": "/root/.ssh", "readOnly": True}]
    spec = clean({"volumeMounts": mounts}, volumes=[{"name": "s", "secret": secret}], securityContext={"fsGroup": 5})
    (mount,) = spec.mounts
    assert (mount.target, mount.read_only, mount.volume.kind, mount.volume.group) == ("/root/.ssh", True, "files", 5)
    files = {file.path: (file.data, oct(file.mode)) for file in mount.volume.files}
    assert files == {"id_rsa": (b"private", "0o440"), "a/b": (b"t0ken", "0o640")}


def test_downward_projected_and_memory_volumes() -> None:
    addresses = {"path": "addresses", "fieldRef": {"fieldPath": "metadata.annotations['mpiboot.dev/addresses']"}}
    me = {"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}
    one = {"configMap": {"name": "conf", "items": [{"key": "A", "path": "a"}]}}
    both = {"sources": [one, {"downwardAPI": {"items": [me]}}]}
    volumes = [
        {"name": "down", "downwardAPI": {"items": [addresses]}},
        {"name": "both", "projected": both},
        {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "slow", "emptyDir": {}},
    ]
    mounts = [{"name": str(volume["name"]), "mountPath": f"/{volume['name']}"} for volume in volumes]
    found = {mount.target: mount.volume for mount in clean({"volumeMounts": mounts}, volumes=volumes).mounts}
    assert found["/down"].addresses == "addresses"
    assert found["/down"].files == ()
    assert {file.path: file.data for file in found["/both"].files} == {"a": b"1", "n": b"pi-worker-0"}
    assert (found["/fast"].kind, found["/fast"].size, found["/slow"].kind) == ("memory", 2**20, "empty")


def test_a_path_of_the_machine_needs_permission() -> None:
    mounts, volumes = [{"name": "d", "mountPath": "/d"}], [{"name": "d", "hostPath": {"path": "/data"}}]
    with pytest.raises(UserError, match=r"/data.*--allow-host-path"):
        spec_of({"volumeMounts": mounts}, volumes=volumes)
    (mount,) = clean({"volumeMounts": mounts}, volumes=volumes, allowed=Allowed(host_path=True)).mounts
    assert (mount.volume.kind, mount.volume.host_path) == ("host", "/data")


def test_a_mount_without_its_volume_is_an_error() -> None:
    with pytest.raises(UserError, match="'nowhere'"):
        spec_of({"volumeMounts": [{"name": "nowhere", "mountPath": "/x"}]})


def test_everything_else_is_named() -> None:
    spec, ignored = spec_of(
        {"livenessProbe": {"httpGet": {}}, "lifecycle": {"preStop": {}}, "securityContext": {"privileged": True}},
        nodeSelector={"gpu": "yes"}, tolerations=[{"key": "k"}], hostNetwork=True, initContainers=[{"name": "i"}],
        volumes=[{"name": "p", "persistentVolumeClaim": {"claimName": "c"}}], affinity={},
    )  # fmt: skip
    assert sorted(ignored) == [
        "hostNetwork", "initContainers", "lifecycle", "livenessProbe", "nodeSelector", "securityContext.privileged",
        "tolerations", "volume p (persistentVolumeClaim; an empty directory instead)",
    ]  # fmt: skip
    assert spec.image == "i"


def test_names_by_which_others_find_it() -> None:
    spec = clean(hostname="pi-worker-0", subdomain="pi", hostAliases=[{"ip": "10.0.0.1", "hostnames": ["db"]}])
    assert spec.aliases[:2] == ("pi-worker-0", "pi-worker-0.pi")
    assert "pi-worker-0.pi.default.svc" in spec.aliases
    assert spec.extra_hosts == {"db": "10.0.0.1"}


@pytest.mark.parametrize(
    ("container", "what"),
    [
        ({"startupProbe": {"tcpSocket": {"port": 2022}}}, "nothing listens on port 2022"),
        ({"readinessProbe": {"tcpSocket": {"port": "s"}}, "ports": [{"name": "s", "containerPort": 24}]},
         "nothing listens on port 24"),
        ({"startupProbe": {"exec": {"command": ["test", "-e", "/ready"]}}}, "its startupProbe does not succeed"),
        ({}, "nothing listens on any port"),
    ],
)  # fmt: skip
def test_the_probe_decides_what_ready_means(container: dict[str, Any], what: str) -> None:
    assert clean(container).ready.what == what
