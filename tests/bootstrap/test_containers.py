"""Launcher and workers in containers of our images: hardened, as process 1, with names that no DNS knows."""

from __future__ import annotations

import io
import os
import secrets
import tarfile
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import APIError, NotFound
from docker.types import EndpointConfig, IPAMConfig, IPAMPool

from tests.bootstrap.processes import eventually
from tests.containers import HARDENED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker
    from docker.models.containers import Container

    from tests.bootstrap.conftest import Keys

WHERE = "hostname; id -u; sleep 0.5"  # a moment, until the last rank has started


@dataclass
class Pod:
    """A job of containers on a network of its own, whose DNS knows none of the job's names."""

    engine: docker.DockerClient
    image: str
    user: str
    keys: Keys
    name: str
    subnet: str
    containers: list[Container] = field(default_factory=list)

    def address(self, number: int) -> str:
        return f"{self.subnet}.{10 + number}"

    def start(self, role: str, number: int, *command: str, **options: Any) -> Container:  # noqa: ANN401 (docker's own words)
        environment = {"K_MPI_JOB_ROLE": role, "MPIBOOT_SSH_DIR": "/keys", "MPIBOOT_HOSTFILE": "/keys/hostfile"}
        environment["MPIBOOT_ADDRESSES"] = "/keys/addresses"
        environment["PRTE_MCA_prte_default_hostfile"] = "/keys/hostfile"  # as the plan has it
        endpoint = EndpointConfig("1.43", ipv4_address=self.address(number))
        name = f"{self.name}-{role}-{number}"
        container = self.engine.containers.create(
            self.image, list(command), name=name, environment=environment, network=self.name,
            networking_config={self.name: endpoint}, volumes={f"{self.name}-{role}": {"bind": "/keys"}}, **options,
        )  # fmt: skip
        self.containers.append(container)
        container.start()
        return container

    def fill(self) -> None:
        """Files go in through a container that is never started: that works with engines far away."""
        hosts = [f"pi-worker-{n}.pi.default.svc" for n in (0, 1)]
        texts = {
            "hostfile": "".join(f"{host} slots=2\n" for host in hosts),
            "addresses": "".join(f"{host} {self.address(n)} 2222 USER\n" for n, host in enumerate(hosts)),
        }
        for role, directory in (("launcher", self.keys.launcher), ("worker", self.keys.worker)):
            volume = {f"{self.name}-{role}": {"bind": "/keys"}}
            carrier = self.engine.containers.create(self.image, ["true"], name=f"{self.name}-{role}", volumes=volume)
            self.containers.append(carrier)
            files = {path.name: path.read_text() for path in directory.iterdir()} | texts
            user = f" {self.user}" if self.user else ""
            carrier.put_archive("/keys", _tar({name: text.replace(" USER", user) for name, text in files.items()}))

    def remove(self) -> None:
        for container in self.containers:
            with suppress(NotFound):
                container.remove(force=True)
        for role in ("launcher", "worker"):
            with suppress(NotFound):
                self.engine.volumes.get(f"{self.name}-{role}").remove()
        with suppress(NotFound):
            self.engine.networks.get(self.name).remove()


def _tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o444
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def pod(
    request: pytest.FixtureRequest,
    docker_engine: docker.DockerClient,
    image: Callable[[str], str],
    session_keys: Keys,
) -> Iterator[Pod]:
    """A job with keys and files; no container runs yet. A test may choose the image and the SSH user."""
    runtime, user = getattr(request, "param", ("openmpi", ""))
    name = f"mpiboot-bootstrap-{secrets.token_hex(4)}"
    for number in range(256):
        subnet = f"10.{77 + os.getpid() % 64}.{number}"
        try:
            pool = IPAMPool(subnet=f"{subnet}.0/24")
            docker_engine.networks.create(name, ipam=IPAMConfig(pool_configs=[pool]), internal=True)
        except APIError:  # another network has this range
            continue
        break
    made = Pod(docker_engine, image(runtime), user, session_keys, name, subnet)
    try:
        made.fill()
        yield made
    finally:
        made.remove()


def hostname(container: Container) -> str:
    assert container.id
    return container.id[:12]


def log(container: Container) -> str:
    return bytes(container.logs()).decode(errors="replace")


def says(container: Container, text: str) -> None:
    eventually(lambda: text in log(container), f"never said {text!r}: {log(container)}")


@pytest.mark.parametrize(("options", "uid"), [({}, "1000"), (HARDENED, "12345"), ({"user": "0"}, "0")])
def test_ranks_run_on_both_workers_as_any_user(pod: Pod, options: dict[str, Any], uid: str) -> None:
    workers = [pod.start("worker", number, **options) for number in (0, 1)]
    launcher = pod.start("launcher", 5, "mpirun", "-n", "4", "sh", "-c", WHERE, **options)
    assert launcher.wait(timeout=120)["StatusCode"] == 0, log(launcher)
    lines = log(launcher).splitlines()
    assert lines.count(uid) == 4, lines
    assert all(lines.count(hostname(worker)) == 2 for worker in workers), lines


@pytest.mark.parametrize("pod", [("openmpi", ""), ("mpich", ""), ("intel", "")], indirect=True)
def test_a_launcher_whose_own_name_nothing_resolves_is_called_back(pod: Pod) -> None:
    workers = [pod.start("worker", number, **HARDENED) for number in (0, 1)]
    launcher = pod.start("launcher", 5, "mpirun", "-n", "4", "sh", "-c", WHERE, hostname="pi-launcher", **HARDENED)
    assert launcher.wait(timeout=120)["StatusCode"] == 0, log(launcher)
    lines = log(launcher).splitlines()
    assert all(lines.count(hostname(worker)) == 2 for worker in workers), lines


@pytest.mark.parametrize("pod", [("openmpi", "mpiuser")], indirect=True)
def test_a_launcher_that_is_root_logs_in_as_the_workers_user(pod: Pod) -> None:
    for number in (0, 1):
        pod.start("worker", number)
    launcher = pod.start("launcher", 5, "mpirun", "-n", "4", "sh", "-c", WHERE, user="0")
    assert launcher.wait(timeout=120)["StatusCode"] == 0, log(launcher)
    assert log(launcher).splitlines().count("1000") == 4


def test_banner_reads_do_not_lock_a_launcher_out(pod: Pod) -> None:
    """sshd from 9.8 on locks out clients that connect and do not log in, unless an option forbids it."""
    worker = pod.start("worker", 0)
    says(worker, "SSH listens")
    script = (
        "import socket, time\n"
        f"for n in range(40): s = socket.create_connection(('{pod.address(0)}', 2222), 5); s.recv(9); s.close()\n"
        f"s = socket.create_connection(('{pod.address(0)}', 2222), 5); print(s.recv(99))\n"
    )
    prober = pod.start("launcher", 5, entrypoint=["python3", "-c", script])
    assert prober.wait(timeout=60)["StatusCode"] == 0, log(prober)
    assert "b'SSH-2.0-OpenSSH_" in log(prober)


def test_mpirun_works_in_a_shell_beside_the_launcher(pod: Pod) -> None:
    workers = [pod.start("worker", number, **HARDENED) for number in (0, 1)]
    launcher = pod.start("launcher", 5, "sleep", "infinity", **HARDENED)
    says(launcher, "2 of 2 workers ready")
    done = launcher.exec_run(["mpirun", "-n", "4", "sh", "-c", WHERE])
    assert done.exit_code == 0, done.output
    assert isinstance(done.output, bytes)
    assert all(done.output.decode().splitlines().count(hostname(worker)) == 2 for worker in workers), done.output


@pytest.mark.parametrize("pod", [("openmpi", ""), ("mpich", "")], indirect=True)
def test_deepspeed_finds_its_hostfile_and_the_first_hosts_address(pod: Pod) -> None:
    for number in (0, 1):
        pod.start("worker", number, **HARDENED)
    first = "pi-worker-0.pi.default.svc"
    script = f"cat /job/hostfile; ssh -o PasswordAuthentication=no -p 22 {first} hostname && ssh {first} hostname -I"
    launcher = pod.start("launcher", 5, "sh", "-c", script, **HARDENED)
    assert launcher.wait(timeout=120)["StatusCode"] == 0, log(launcher)
    hosts = [f"pi-worker-{number}.pi.default.svc slots=2" for number in (0, 1)]
    said = [line.strip() for line in log(launcher).splitlines() if not line.startswith("mpiboot: ")]
    assert said[:2] == hosts
    assert said[-1] == pod.address(0)


@pytest.mark.parametrize("pod", [("openmpi", ""), ("mpich", ""), ("intel", "")], indirect=True)
def test_ranks_get_the_variables_of_torch(pod: Pod) -> None:
    workers = [pod.start("worker", number, **HARDENED) for number in (0, 1)]
    words = "rank $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $(hostname) $MASTER_ADDR:$MASTER_PORT"
    script = (
        f"mpirun -n 4 rank-env sh -c 'echo \"{words}\"; sleep 0.5' && echo at $MASTER_ADDR:$MASTER_PORT; rank-env true"
    )
    launcher = pod.start("launcher", 5, "sh", "-c", script, **HARDENED)
    assert launcher.wait(timeout=120)["StatusCode"] == 2, log(launcher)
    lines = log(launcher).splitlines()
    at = next(line.removeprefix("at ") for line in lines if line.startswith("at "))
    assert at.startswith(f"{pod.address(0)}:2")
    assert sorted(line for line in lines if line.startswith("rank ")) == [
        f"rank {rank}/4 {rank % 2}/2 {hostname(workers[rank // 2])} {at}" for rank in range(4)
    ]
    assert "rank-env: not a rank of an mpirun; write: mpirun -n N rank-env true" in lines


def test_process_1_forwards_signals_and_ends_at_once(pod: Pod) -> None:
    workers = [pod.start("worker", number, **HARDENED) for number in (0, 1)]
    script = "mpirun -n 2 sh -c 'echo rank is here; exec sleep 600'; echo not reached"
    launcher = pod.start("launcher", 5, "sh", "-c", script, **HARDENED)
    says(launcher, "rank is here")
    launcher.kill("SIGTERM")
    assert launcher.wait(timeout=60)["StatusCode"] == 143, log(launcher)
    assert "not reached" not in log(launcher)
    for worker in workers:
        processes = [row[-1] for row in worker.top()["Processes"]]
        assert [line for line in processes if "sleep 600" in line] == []
        worker.kill("SIGTERM")
        assert worker.wait(timeout=60)["StatusCode"] == 143, log(worker)


def test_process_1_collects_orphans(pod: Pod) -> None:
    pod.start("worker", 0)
    pod.start("worker", 1)
    orphans = "for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.2' &); done; sleep 1; echo made; exec sleep 600"
    launcher = pod.start("launcher", 5, "sh", "-c", orphans)
    says(launcher, "made")
    eventually(lambda: not [row for row in launcher.top(ps_args="-eo pid,stat,args")["Processes"] if row[1][0] == "Z"])


def test_the_cause_of_a_failure_is_the_termination_message(pod: Pod) -> None:
    script = "touch /dev/termination-log; mpiboot launch --init-timeout 1 -- true; echo $?; cat /dev/termination-log"
    launcher = pod.start("launcher", 5, user="0", entrypoint=["sh", "-c", script])
    assert launcher.wait(timeout=60)["StatusCode"] == 0
    said, code, left = log(launcher).partition("\n124\n")
    assert code
    for number in (0, 1):
        assert f"pi-worker-{number}.pi.default.svc at {pod.address(number)}:2222  " in left
    assert left.strip() in said
