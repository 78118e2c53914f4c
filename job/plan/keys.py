"""The job's Secret and how each role mounts it.

Two key pairs: a launcher gets the client's private half, workers the host's. They appear under the names that images of
all makers expect (`id_rsa`, ...).
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from mpiboot.job import names
from mpiboot.job.names import ANY_USERS, AUTHORIZED_KEYS, HOST_KEY, PRIVATE, known_hosts
from mpiboot.job.plan import environment, pods
from mpiboot.job.plan.objects import metadata
from mpiboot.job.template import run_as_user

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.arrangement import Arrangement, RoleArrangement
    from mpiboot.job.model import Job
    from mpiboot.job.plan.ssh_material import SshMaterial

PUBLIC = 0o444  # readable by any uid that a container may have
ROOT_ONLY = 0o600  # ssh and sshd of root refuse a key that others can read

CLIENT_PRIVATE, CLIENT_PUBLIC = "ssh-privatekey", "ssh-publickey"
HOST_PRIVATE, HOST_PUBLIC = "host-privatekey", "host-publickey"
KNOWN_HOSTS = "known_hosts"
TOKEN = "token"  # noqa: S105 - the name of a key in the Secret


def secret(arrangement: Arrangement, material: SshMaterial) -> dict[str, Any]:
    """The Secret, its values in base64 as the API has them."""
    job = arrangement.job
    texts = {
        CLIENT_PRIVATE: material.client_private,
        CLIENT_PUBLIC: material.client_public,
        HOST_PRIVATE: material.host_private,
        HOST_PUBLIC: material.host_public,
        KNOWN_HOSTS: known_hosts(material.client_public if arrangement.one_pair else material.host_public),
        TOKEN: material.token,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(job, names.secret(job.name), names.object_labels(job)),
        "type": "kubernetes.io/ssh-auth",
        "data": {key: b64encode(text.encode()).decode() for key, text in texts.items()},
    }


def volume(arrangement: Arrangement, role: RoleArrangement) -> pods.Volume:
    """The Secret as a role mounts it. Where hosts show keys that the job does not know, there is no known_hosts."""
    job = arrangement.job
    if role is arrangement.launcher or arrangement.one_pair:
        key, files = CLIENT_PRIVATE, {"id_rsa.pub": CLIENT_PUBLIC, "authorized_keys": CLIENT_PUBLIC}
        if arrangement.verify_hosts:
            files["known_hosts"] = KNOWN_HOSTS
    else:
        key, files = HOST_PRIVATE, {"id_rsa.pub": HOST_PUBLIC, "authorized_keys": CLIENT_PUBLIC}
    items = [
        *({"key": key, "path": path, "mode": mode} for path, mode in private_files(job, role).items()),
        *({"key": public, "path": path, "mode": PUBLIC} for path, public in files.items()),
    ]
    source = {"secret": {"secretName": names.secret(job.name), "defaultMode": PUBLIC, "items": items}}
    return pods.Volume("ssh-auth", source, job.ssh_auth_mount_path)


def in_environment(job: Job) -> dict[str, Mapping[str, Any]]:
    """The keys as variables of a worker whose pod mounts nothing."""
    return {
        HOST_KEY: environment.secret_ref(job, HOST_PRIVATE),
        AUTHORIZED_KEYS: environment.secret_ref(job, CLIENT_PUBLIC),
    }


def private_files(job: Job, role: RoleArrangement) -> dict[str, int]:
    """The files of a private key, with modes that their user accepts and can read."""
    uid = run_as_user(role.template, role.container)
    if role.copies_key or uid:  # a key that is copied first only has to be readable
        return {PRIVATE: PUBLIC}
    if uid == 0:
        return {PRIVATE: ROOT_ONLY}
    in_roots_home = f"{job.ssh_auth_mount_path}/".startswith("/root/")
    # Root's home is the default for keys, so the container may run as another user.
    return {PRIVATE: ROOT_ONLY, ANY_USERS: PUBLIC} if in_roots_home else {PRIVATE: PUBLIC}
