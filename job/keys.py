"""The job's Secret and how each role mounts it.

Two key pairs: a launcher gets the client's private half, workers the host's. They appear under the names that images of
all makers expect (`id_rsa`, ...).
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from mpiboot.job import environment, labels, names, pods, wishes
from mpiboot.job.keyfiles import ANY_USERS, AUTHORIZED_KEYS, HOST_KEY, PRIVATE
from mpiboot.job.objects import metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.material import SshMaterial
    from mpiboot.job.model import Job, Role

PUBLIC = 0o444  # readable by any uid that a container may have
ROOT_ONLY = 0o600  # ssh and sshd of root refuse a key that others can read

CLIENT_PRIVATE, CLIENT_PUBLIC = "ssh-privatekey", "ssh-publickey"
HOST_PRIVATE, HOST_PUBLIC = "host-privatekey", "host-publickey"
KNOWN_HOSTS = "known_hosts"
TOKEN = "token"  # noqa: S105 - the name of a key in the Secret


def one_pair(job: Job) -> bool:
    """Whether workers get the client's key too, because ranks log in to each other."""
    return wishes.worker_ssh(job.annotations) == "on"


def secret(job: Job, material: SshMaterial) -> dict[str, Any]:
    """The Secret, its values in base64 as the API has them."""
    texts = {
        CLIENT_PRIVATE: material.client_private,
        CLIENT_PUBLIC: material.client_public,
        HOST_PRIVATE: material.host_private,
        HOST_PUBLIC: material.host_public,
        KNOWN_HOSTS: known_hosts(material.client_public if one_pair(job) else material.host_public),
        TOKEN: material.token,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(job, names.secret(job.name), labels.of_object(job)),
        "type": "kubernetes.io/ssh-auth",
        "data": {key: b64encode(text.encode()).decode() for key, text in texts.items()},
    }


def known_hosts(public: str) -> str:
    """One line for all hosts: every worker has the job's host key, under whatever name or port it is reached."""
    key_type, key = public.split()[:2]
    return f"* {key_type} {key}\n"


def volume(job: Job, role: Role, *, private: Mapping[str, int], verify: bool) -> pods.Volume:
    """The Secret as a role mounts it. Without `verify` there is no known_hosts: hosts show keys we do not know."""
    if role == "launcher" or one_pair(job):
        key, files = CLIENT_PRIVATE, {"id_rsa.pub": CLIENT_PUBLIC, "authorized_keys": CLIENT_PUBLIC}
        if verify:
            files["known_hosts"] = KNOWN_HOSTS
    else:
        key, files = HOST_PRIVATE, {"id_rsa.pub": HOST_PUBLIC, "authorized_keys": CLIENT_PUBLIC}
    items = [
        *({"key": key, "path": path, "mode": mode} for path, mode in private.items()),
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


def private_files(
    job: Job, template: Mapping[str, Any], container: Mapping[str, Any], *, copied: bool
) -> dict[str, int]:
    """The files of a private key, with modes that their user accepts and can read.

    `copied`: mpiboot runs there and copies the key to a directory of its own first, so all that counts is reading it.
    """
    uid = pods.run_as_user(template, container)
    if copied or uid:
        return {PRIVATE: PUBLIC}
    if uid == 0:
        return {PRIVATE: ROOT_ONLY}
    in_roots_home = f"{job.ssh_auth_mount_path}/".startswith("/root/")
    # Root's home is where keys go when a manifest does not say, so the user may be another.
    return {PRIVATE: ROOT_ONLY, ANY_USERS: PUBLIC} if in_roots_home else {PRIVATE: PUBLIC}
