"""Launcher and worker with the real check-in server between them: no file, no DNS, reasons for what is missing."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from mpiboot.checkin.authority import Credentials
from mpiboot.checkin.roster import Pod, View
from mpiboot.checkin.server import CheckinServer
from tests.bootstrap.conftest import PORT
from tests.bootstrap.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bootstrap.conftest import Job
    from tests.bootstrap.processes import Process

JOB, TOKEN = "default/pi", "t0ken-t0ken"


@dataclass
class Authority:
    """What an operator knows: one job, its names, and its pods."""

    names: tuple[str, ...]
    pods: dict[int, Pod] = field(default_factory=dict)

    async def credentials(self, job: str) -> Credentials | None:
        return Credentials("u1", TOKEN) if job == JOB else None

    def view(self, job: str) -> View | None:
        return View(self.names, self.pods) if job == JOB else None


@dataclass
class Operator:
    """A check-in server in a thread of its own."""

    authority: Authority
    loop: asyncio.AbstractEventLoop
    server: CheckinServer
    url: str

    def pods(self, **pods: Pod) -> None:
        """The pods, as the operator's watch reports them: `w0=Pod(...)`."""
        self.authority.pods = {int(name[1:]): pod for name, pod in pods.items()}
        view = self.authority.view(JOB)
        assert view
        self.loop.call_soon_threadsafe(self.server.observe, JOB, view)


@pytest.fixture
def operator(job: Job) -> Iterator[Operator]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    authority = Authority(tuple(job.names))

    async def start() -> CheckinServer:
        server = CheckinServer(authority, log=lambda _: None)
        await server.start("127.0.0.1", port)
        return server

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    server = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    yield Operator(authority, loop, server, f"http://127.0.0.1:{port}")
    asyncio.run_coroutine_threadsafe(server.close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


def told(operator: Operator, **more: str) -> dict[str, str]:
    return {"MPIBOOT_CHECKIN": operator.url, "MPIBOOT_JOB": JOB, "MPIBOOT_TOKEN": TOKEN, **more}


def start(job: Job, operator: Operator, index: int, uid: str = "") -> None:
    address = job.addresses[index]
    env = told(operator, MPIBOOT_INDEX=str(index), MPIBOOT_POD_IP=address, MPIBOOT_POD_UID=uid or f"uid-{index}")
    job.start(index, env=env)


def launch(job: Job, operator: Operator, *words: object, options: tuple[object, ...] = ()) -> Process:
    job.address_file.unlink(missing_ok=True)
    files = ("--ssh-dir", job.keys.launcher, "--hostfile", job.hostfile)
    return job.run("launch", *files, *options, "--", *words, env={**job.env, **told(operator)})


def test_workers_that_check_in_are_all_a_launcher_needs(job: Job, operator: Operator) -> None:
    launcher = launch(job, operator, "true")
    start(job, operator, 0)
    start(job, operator, 1)
    assert launcher.ends() == 0, launcher.stderr
    assert "2 of 2 workers ready" in launcher.stderr
    assert "Connection closed" not in job.workers[0].stderr  # it was not even update_from_probe


def test_a_pod_that_waits_for_a_machine_is_reported_and_not_timed(job: Job, operator: Operator) -> None:
    operator.pods(w1=Pod(uid="uid-1", state="pending", reason="Unschedulable: 0/3 nodes have nvidia.com/gpu"))
    launcher = launch(job, operator, "true", options=("--init-timeout", 5))
    start(job, operator, 0)
    launcher.says("pi-worker-1 (Unschedulable: 0/3 nodes have nvidia.com/gpu)")
    threading.Event().wait(6)  # longer than the limit
    assert launcher.popen.poll() is None
    start(job, operator, 1)
    assert launcher.ends() == 0, launcher.stderr


def test_a_port_that_is_taken_is_replaced_and_reported(job: Job, operator: Operator) -> None:
    """Two workers on one node's network."""
    with socket.create_server((job.addresses[0], PORT)):
        launcher = launch(job, operator, "true")
        start(job, operator, 0)
        start(job, operator, 1)
        assert launcher.ends() == 0, launcher.stderr
    assert f"port {PORT} is in use already" in job.workers[0].stderr


def test_workers_that_start_at_once_on_one_network_do_not_take_the_same_port(job: Job) -> None:
    address = job.addresses[0]
    words = ("worker", "--ssh-dir", job.keys.worker, "--listen", address, "--port", PORT)
    nowhere = {"MPIBOOT_CHECKIN": "http://127.0.0.1:9", "MPIBOOT_JOB": JOB, "MPIBOOT_TOKEN": TOKEN}
    workers = [job.run(*words, env={**job.env, **nowhere, "MPIBOOT_INDEX": str(index)}) for index in range(6)]
    for worker in workers:
        worker.says(f"SSH listens on {address} port")
    ports = [re.findall(r"Server listening on \S+ port (\d+)", worker.stderr) for worker in workers]
    told_of = [re.findall(r"SSH listens on \S+ port (\d+)", worker.stderr) for worker in workers]
    assert ports == told_of
    assert len({port for (port,) in ports}) == 6


def test_a_worker_that_fails_while_the_job_runs_ends_it_with_the_cause(job: Job, operator: Operator) -> None:
    launcher = launch(job, operator, "sleep", "600")
    start(job, operator, 0)
    start(job, operator, 1)
    launcher.says("2 of 2 workers ready")
    operator.pods(w1=Pod(uid="uid-1", state="failed", reason="OOMKilled"))
    launcher.says("was lost while the job ran: OOMKilled; the command has 10 s to end by itself")
    assert launcher.ends() == 125
    assert f"worker {job.name(1)} was lost while the job ran: OOMKilled\n" in launcher.stderr


def test_an_elastic_job_follows_the_stream(job: Job, operator: Operator) -> None:
    launcher = launch(job, operator, "sleep", "600", options=("--min-workers", 1))
    start(job, operator, 0)
    eventually(lambda: list(job.directory.glob("mpiboot-launch-*/live-hosts")))
    [live] = job.directory.glob("mpiboot-launch-*/live-hosts")
    assert live.read_text() == f"{job.name(0)}:2\n"
    start(job, operator, 1)
    eventually(lambda: live.read_text() == f"{job.name(0)}:2\n{job.name(1)}:2\n")
    launcher.kill()
    assert launcher.ends() == 143


def test_a_worker_that_checked_in_and_answers_no_more_is_taken_off_the_list(job: Job, operator: Operator) -> None:
    """Like a worker whose network is cut: its pod runs, and no source reports that it is gone."""
    launcher = launch(job, operator, "sleep", "600", options=("--min-workers", 1))
    start(job, operator, 0)
    start(job, operator, 1)
    eventually(lambda: list(job.directory.glob("mpiboot-launch-*/live-hosts")))
    [live] = job.directory.glob("mpiboot-launch-*/live-hosts")
    eventually(lambda: live.read_text() == f"{job.name(0)}:2\n{job.name(1)}:2\n")
    job.stop(1)
    launcher.says("2 -> 1 workers: - worker-1 (")
    assert live.read_text() == f"{job.name(0)}:2\n"
    start(job, operator, 1)
    launcher.says("1 -> 2 workers: + worker-1\n")
    launcher.kill()
    assert launcher.ends() == 143


def test_without_a_server_dns_and_probes_do(job: Job) -> None:
    """The check-in is gone or never existed; the address file still works."""
    job.start(0, 1)
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    env = {"MPIBOOT_CHECKIN": nowhere, "MPIBOOT_JOB": JOB, "MPIBOOT_TOKEN": TOKEN}
    launcher = job.launch("true", env=env)
    assert launcher.ends() == 0, launcher.stderr
