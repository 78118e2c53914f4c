"""A plan as processes of this machine: files, arguments, environment. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.engines import objects, planned, podenv, podvolumes
from mpiboot.job import names, trust
from mpiboot.job.environment import ADDRESSES_DIR, CONFIG_DIR
from mpiboot.job.errors import UserError
from mpiboot.job.pods import main_container

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.engines.podvolumes import File
    from mpiboot.job.model import Role
    from mpiboot.job.plan import Plan

HOSTS = "hosts"
POD_HONOURED = frozenset({
    "containers", "volumes", "hostname", "subdomain", "restartPolicy", "terminationGracePeriodSeconds",
    "activeDeadlineSeconds", "dnsConfig", "dnsPolicy", "automountServiceAccountToken", "enableServiceLinks",
})  # fmt: skip
CONTAINER_HONOURED = frozenset({
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

    who: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    host: str = ""  # the host name to give it; empty: this machine's


@dataclass(frozen=True)
class Layout:
    """All of a job: what to write below its scratch directory, and what to run."""

    files: Mapping[str, File]
    programs: tuple[Program, ...]
    unmet: Mapping[str, set[str]]
    images: frozenset[str]


def layout(plan: Plan, scratch: str, endpoints: Sequence[Endpoint], mpiboot: Sequence[str]) -> Layout:
    """`mpiboot` are the words that run mpiboot."""
    files: dict[str, File] = {}
    programs, images = [], set()
    unmet: dict[str, set[str]] = {}
    given = objects.of_plan(plan)
    for role, index, pod in planned.pods(plan):
        container = main_container(pod, plan.job.main_container)
        images.add(str(container.get("image") or ""))
        places = _Places(scratch, role, plan.job.ssh_auth_mount_path)
        missed: list[str] = []
        env = podenv.environment(pod, container, given, missed)
        files |= _files(pod, container, given, places, missed)
        env = {name: places.translated(value) for name, value in env.items()} | {"MPIBOOT_SSH_DIR": places.ssh}
        missed += [key for key, value in pod["spec"].items() if key not in POD_HONOURED and value]
        runs = role == "launcher" or trust.starts_mpiboot(container)
        known = CONTAINER_HONOURED | ({"command", "args"} if runs else set())
        missed += [key for key, value in container.items() if key not in known and value]
        words: Sequence[str]
        if role == "worker":
            words = [*mpiboot, "worker", "--listen", endpoints[index].address, "--port", str(endpoints[index].port)]
        else:
            words = _launch(container, env, places, mpiboot)
        who = role if role == "launcher" else f"{role}-{index}"
        host = str(pod["metadata"]["name"]) if role == "worker" else ""
        programs.append(Program(who, words, env, container.get("workingDir"), host))
        for what in missed:
            unmet.setdefault(what, set()).add(role)
    known_at = {index: f"{at.address} {at.port} {at.user}" for index, at in enumerate(endpoints)}
    text = planned.addresses(plan.job, known_at)
    files[HOSTS] = podvolumes.File(HOSTS, _hosts(plan, endpoints).encode(), 0o444)
    files["launcher/addresses/addresses"] = podvolumes.File("addresses", text.encode(), 0o444)
    return Layout(files, tuple(programs), unmet, frozenset(images))


def _hosts(plan: Plan, endpoints: Sequence[Endpoint]) -> str:
    """Lines for /etc/hosts: every worker by its short and its long name."""
    long = names.worker_hosts(plan.job)
    return "".join(f"{at.address} {long[index].split('.')[0]} {long[index]}\n" for index, at in enumerate(endpoints))


@dataclass(frozen=True)
class _Places:
    """Where the paths that the plan mounts are on this machine."""

    scratch: str
    role: Role
    ssh_mount: str

    @property
    def ssh(self) -> str:
        return f"{self.scratch}/{self.role}/ssh"

    def of(self, mount_path: str) -> str | None:
        """A directory below the scratch directory, for paths of the plan's own."""
        own = {self.ssh_mount: "ssh", CONFIG_DIR: "config", ADDRESSES_DIR: "addresses"}
        name = own.get(mount_path.rstrip("/"))
        return name and f"{self.role}/{name}"

    def translated(self, text: str) -> str:
        """A text that names /etc/mpi/... or /etc/mpiboot/... with the paths of this machine."""
        text = text.replace(f"{ADDRESSES_DIR}/", f"{self.scratch}/{self.role}/addresses/")
        return text.replace(f"{CONFIG_DIR}/", f"{self.scratch}/{self.role}/config/")


def _files(
    pod: Mapping[str, Any], container: Mapping[str, Any], given: objects.Objects, places: _Places, missed: list[str]
) -> dict[str, File]:
    found = {}
    volumes = podvolumes.volumes(pod, given, missed)
    for mount in container.get("volumeMounts") or ():
        volume, place = volumes[mount["name"]], places.of(str(mount["mountPath"]))
        if place is None:
            missed.append(f"the volume {volume.name} at {mount['mountPath']}")
        else:
            found.update({f"{place}/{file.path}": file for file in volume.files})
    return found


def _launch(
    container: Mapping[str, Any], env: Mapping[str, str], places: _Places, mpiboot: Sequence[str]
) -> Sequence[str]:
    given = [*(podenv.words(container, "command", env) or ()), *(podenv.words(container, "args", env) or ())]
    words = [places.translated(word) for word in given]
    if not words:
        raise UserError("the launcher has no command; an image's own command cannot run without the image")
    return [*mpiboot, *words[1:]] if words[0] == "mpiboot" else [*mpiboot, "launch", "--", *words]
