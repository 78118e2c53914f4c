"""A worker from which no packet comes any more, while ranks run: in a network of its own, which the test cuts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from itertools import count
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.process import reaper
from tests.bootstrap.processes import eventually
from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.bootstrap.conftest import Job

_numbers = count()
RANK = 'echo "here $MPIBOOT_ATTEMPT"; [ "$MPIBOOT_ATTEMPT" = 2 ] || exec sleep 600'


class Network:
    """A network of its own for one worker, and the interface of this machine that leads to it."""

    def __init__(self) -> None:
        number = (os.getpid() * 251 + next(_numbers)) % 16384
        self.name = f"mb{os.getpid()}x{number}"[:15]
        subnet = f"198.18.{number // 64}.{number % 64 * 4}".split(".")
        base = int(subnet[3])
        self.ours, self.theirs = (".".join([*subnet[:3], str(base + host)]) for host in (1, 2))
        self.link = f"mbv{number}"

    def make(self) -> None:
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "addr", "add", f"{self.ours}/30", "dev", self.link)
        run("ip", "link", "set", self.link, "up")
        self.inside("ip", "addr", "add", f"{self.theirs}/30", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")
        self.inside("ip", "link", "set", "lo", "up")

    def inside(self, *words: str) -> None:
        run("ip", "netns", "exec", self.name, *words)

    def cut(self) -> None:
        """From now on no packet comes from the worker, and none reaches it."""
        self.inside("ip", "link", "set", "eth0", "down")

    def mend(self) -> None:
        self.inside("ip", "link", "set", "eth0", "up")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self.link], check=False, capture_output=True)


def passes(seconds: float) -> None:
    ends = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > ends)


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


@pytest.fixture
def network() -> Iterator[Network]:
    if os.geteuid() != 0 or not shutil.which("ip"):
        missing("a network of its own for a worker", "run the tests as root, with iproute2")
    made = Network()
    try:
        made.make()
        yield made
    finally:
        made.remove()


@pytest.fixture(params=["openmpi", "mpich", "intel"])
def cuttable(request: pytest.FixtureRequest, job: Job, network: Network, runtime: Callable[[str], Path]) -> Job:
    """A job whose second worker is in a network of its own."""
    job.runtime = runtime(request.param)
    job.addresses = [network.ours, network.theirs]
    job.ports = {0: 30000 + os.getpid() % 20000, 1: 2222}
    job.write()
    job.start(0)
    prefix = ("ip", "netns", "exec", network.name)
    job.workers[1] = job.run(
        "worker", "--ssh-dir", job.keys.worker, "--listen", network.theirs, "--port", 2222, env=job.env, prefix=prefix
    )
    job.workers[1].says("SSH listens")
    return job


@pytest.mark.parametrize("cuttable", ["openmpi"], indirect=True)
def test_a_worker_whose_network_is_cut_ends_the_job(cuttable: Job, network: Network) -> None:
    launch = cuttable.launch("mpirun", "-n", 4, "sh", "-c", RANK, options=("--lost-worker-timeout", 2))
    launch.says("here 1", times=4)
    network.cut()
    assert launch.ends() == 125, launch.stderr
    lost = f"worker {cuttable.name(1)} was lost while the job ran: no packet came from {network.theirs} for 2 s"
    assert lost in launch.stderr


def test_a_worker_whose_network_is_cut_starts_the_job_again(cuttable: Job, network: Network) -> None:
    options = ("--lost-worker-timeout", 2, "--restarts", 1)
    launch = cuttable.launch("mpirun", "-n", 4, "sh", "-c", RANK, options=options)
    launch.says("here 1", times=4)
    network.cut()
    launch.says("attempt 2 starts")
    launch.says("1/2 workers ready")
    network.mend()
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout.count("here 2") == 4


def test_a_worker_that_is_stopped_or_cut_for_a_moment_is_not_lost(cuttable: Job, network: Network) -> None:
    script = 'echo "here $MPIBOOT_ATTEMPT"; while [ ! -e "$1" ]; do sleep 0.1; done'
    done = cuttable.directory / "done"
    words = ("mpirun", "-n", 4, "sh", "-c", script, "sh", done)
    launch = cuttable.launch(*words, options=("--lost-worker-timeout", 4))
    launch.says("here 1", times=4)
    worker = cuttable.workers[1].popen.pid
    stopped = [worker, *reaper.descendants(worker)]
    for pid in stopped:
        reaper.send(pid, signal.SIGSTOP)
    passes(6.0)  # longer than the limit: this is what must not matter
    for pid in reversed(stopped):
        reaper.send(pid, signal.SIGCONT)
    network.cut()
    passes(1.0)
    network.mend()
    done.touch()
    assert launch.ends() == 0, launch.stderr
    assert "was lost" not in launch.stderr
