"""The plan of a job as files, arguments and environments of processes on this machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.engines.inbox import process_name
from mpiboot.engines.pods import local_plan, objects, pod_environment, pod_volumes
from mpiboot.job import names
from mpiboot.job.errors import UserError
from mpiboot.job.names import CONFIG_DIR
from mpiboot.job.plan.environment import ADDRESSES_DIR
from mpiboot.job.template import main_container, starts_mpiboot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.engines.pods.pod_volumes import File
    from mpiboot.job.model import Role
    from mpiboot.job.plan.plan import Plan

HOSTS = "hosts"
POD_FIELDS = frozenset({
    "containers", "volumes", "hostname", "subdomain", "restartPolicy", "terminationGracePeriodSeconds",
    "activeDeadlineSeconds", "dnsConfig", "dnsPolicy", "automountServiceAccountToken", "enableServiceLinks",
})  # fmt: skip
CONTAINER_FIELDS = frozenset({
    "name", "image", "imagePullPolicy", "env", "envFrom", "volumeMounts", "workingDir", "ports", "stdin", "tty",
    "startupProbe", "readinessProbe", "terminationMessagePath", "terminationMessagePolicy",
})  # fmt: skip


@dataclass(frozen=True)
class Endpoint:
    """Where a worker listens."""

    address: str
    port: int
    user: str


@dataclass(frozen=True)
class Program:
    """One process to start. `env` comes over this process's own environment."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    host: str = ""  # the host name to give it; empty: this machine's


@dataclass(frozen=True)
class Layout:
    """All of a job: what to write below its scratch directory, and what to run."""

    files: Mapping[str, File]
    programs: tuple[Program, ...]
    ignored: Mapping[str, set[str]]
    images: frozenset[str]


def layout(plan: Plan, scratch: str, endpoints: Sequence[Endpoint], mpiboot: Sequence[str]) -> Layout:
    """`mpiboot` are the words that run mpiboot."""
    files: dict[str, File] = {}
    programs, images = [], set()
    ignored: dict[str, set[str]] = {}
    given = objects.of_plan(plan)
    for role, index, pod in local_plan.pods(plan):
        container = main_container(pod, plan.job.main_container)
        images.add(str(container.get("image") or ""))
        paths = _Paths(scratch, role, plan.job.ssh_auth_mount_path)
        left_out: list[str] = []
        env = pod_environment.environment(pod, container, given, left_out)
        files |= _files(pod, container, given, paths, left_out)
        env = {name: paths.translate(value) for name, value in env.items()} | {"MPIBOOT_SSH_DIR": paths.ssh}
        left_out += [key for key, value in pod["spec"].items() if key not in POD_FIELDS and value]
        runs = role == "launcher" or starts_mpiboot(container)
        known = CONTAINER_FIELDS | ({"command", "args"} if runs else set())
        left_out += [key for key, value in container.items() if key not in known and value]
        words: Sequence[str]
        if role == "worker":
            words = [*mpiboot, "worker", "--listen", endpoints[index].address, "--port", str(endpoints[index].port)]
        else:
            words = _launch(container, env, paths, mpiboot)
        host = str(pod["metadata"]["name"]) if role == "worker" else ""
        programs.append(Program(process_name(role, index), words, env, container.get("workingDir"), host))
        for what in left_out:
            ignored.setdefault(what, set()).add(role)
    known_at = {index: f"{at.address} {at.port} {at.user}" for index, at in enumerate(endpoints)}
    text = local_plan.addresses(plan.job, known_at)
    files[HOSTS] = pod_volumes.File(HOSTS, _hosts(plan, endpoints).encode(), 0o444)
    files["launcher/addresses/addresses"] = pod_volumes.File("addresses", text.encode(), 0o444)
    return Layout(files, tuple(programs), ignored, frozenset(images))


def _hosts(plan: Plan, endpoints: Sequence[Endpoint]) -> str:
    """Lines for /etc/hosts: every worker by its short and its long name."""
    long = names.worker_hosts(plan.job)
    return "".join(f"{at.address} {long[index].split('.')[0]} {long[index]}\n" for index, at in enumerate(endpoints))


@dataclass(frozen=True)
class _Paths:
    """The directories of this machine that stand for the paths of the plan's mounts."""

    scratch: str
    role: Role
    ssh_mount: str

    @property
    def ssh(self) -> str:
        return f"{self.scratch}/{self.role}/ssh"

    def of(self, mount_path: str) -> str | None:
        """A directory below the scratch directory, if the plan itself mounts this path."""
        own = {self.ssh_mount: "ssh", CONFIG_DIR: "config", ADDRESSES_DIR: "addresses"}
        name = own.get(mount_path.rstrip("/"))
        return name and f"{self.role}/{name}"

    def translate(self, text: str) -> str:
        """The text with /etc/mpi/... and /etc/mpiboot/... replaced by directories of this machine."""
        text = text.replace(f"{ADDRESSES_DIR}/", f"{self.scratch}/{self.role}/addresses/")
        return text.replace(f"{CONFIG_DIR}/", f"{self.scratch}/{self.role}/config/")


def _files(
    pod: Mapping[str, Any], container: Mapping[str, Any], given: objects.Objects, paths: _Paths, left_out: list[str]
) -> dict[str, File]:
    found = {}
    volumes = pod_volumes.volumes(pod, given, left_out)
    for mount in container.get("volumeMounts") or ():
        volume, directory = volumes[mount["name"]], paths.of(str(mount["mountPath"]))
        if directory is None:
            left_out.append(f"the volume {volume.name} at {mount['mountPath']}")
        else:
            found.update({f"{directory}/{file.path}": file for file in volume.files})
    return found


def _launch(
    container: Mapping[str, Any], env: Mapping[str, str], paths: _Paths, mpiboot: Sequence[str]
) -> Sequence[str]:
    command, args = (pod_environment.words(container, field, env) or () for field in ("command", "args"))
    given = [*command, *args]
    words = [paths.translate(word) for word in given]
    if not words:
        raise UserError("the launcher has no command; an image's own command cannot run without the image")
    return [*mpiboot, *words[1:]] if words[0] == "mpiboot" else [*mpiboot, "launch", "--", *words]
