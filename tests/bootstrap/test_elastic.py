"""Elastic jobs: the list of hosts, its log lines, and what is refused before the command starts."""

from __future__ import annotations

import select
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.elastic import discovery, horovod
from mpiboot.bootstrap.elastic.live_hosts import change
from mpiboot.ssh.banner import GREETING
from tests.bootstrap.conftest import PORT, write_keys
from tests.bootstrap.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.bootstrap.conftest import Job, Server

NAMES = [f"pi-worker-{number}.pi.default.svc" for number in range(4)]
# Polls a script like horovodrun, and prints its answer when it changes.
POLL = """
before=
while :; do
    now=$(sh "$0" 2>/dev/null | tr '\\n' ' ')
    [ "$now" = "$before" ] || echo "listed: $now"
    before=$now
    [ -e "$1" ] && exit 0
    sleep 0.2
done
"""


def script(job: Job, text: str) -> Path:
    path = job.directory / "discover.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_change_is_one_line() -> None:
    assert change(NAMES[:2], NAMES[:3], {}) == "2 -> 3 workers: + worker-2"
    assert change(NAMES[:3], NAMES[:1], {}) == "3 -> 1 workers: - worker-1, - worker-2"
    assert change(NAMES[:2], NAMES[1:3], {NAMES[0]: "refused"}) == "2 -> 2 workers: + worker-2, - worker-0 (refused)"


def test_workers_that_come_and_go_are_listed_and_logged_once(job: Job) -> None:
    finder, end = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"'), job.directory / "end"
    job.start(0, 1)
    job.tell(0)
    words = ("sh", "-c", POLL, finder, end, "--host-discovery-script", finder)
    launch = job.launch(*words, options=("--min-workers", 1))
    launch.says(f"listed: {job.name(0)}:2 \n")
    job.tell(0, 1)
    launch.says(f"listed: {job.name(0)}:2 {job.name(1)}:2 \n")
    launch.says("mpiboot: 1 -> 2 workers: + worker-1\n")
    job.stop(1)
    launch.says("mpiboot: 2 -> 1 workers: - worker-1 (")
    job.start(1)
    launch.says("mpiboot: 1 -> 2 workers: + worker-1\n", times=2)
    end.touch()
    assert launch.ends() == 0
    assert launch.stderr.count(" workers: ") == 3


def test_a_file_counts_workers_that_were_started_again(job: Job) -> None:
    finder, end = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"'), job.directory / "end"
    starts = job.directory / "starts.sh"
    starts.write_text('cat "${MPIBOOT_LIVE_HOSTS%/*}/worker-starts" 2>/dev/null || echo none\n')
    job.start(0, 1)
    launch = job.launch("sh", "-c", POLL, starts, end, "--host-discovery-script", finder, options=("--min-workers", 2))
    launch.says("listed: none \n")
    job.tell(0)
    launch.says("mpiboot: 2 -> 1 workers: - worker-1\n")
    job.tell(0, 1)
    launch.says(f"listed: {job.name(1)} 1 \n")
    end.touch()
    assert launch.ends() == 0


def relay(serve: Callable[..., Server], target: str, sent: list[int]) -> str:
    """An address that relays to a worker; `sent`: the number of bytes from each client."""

    def pass_on(client: socket.socket) -> None:
        count = 0
        with socket.create_connection((target, PORT)) as worker:
            while True:
                for source in select.select([client, worker], [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        sent.append(count)
                        return
                    count += len(data) if source is client else 0
                    (worker if source is client else client).sendall(data)

    return serve(pass_on).address


def test_an_sshd_with_another_host_key_is_taken_off_the_list(job: Job, tmp_path: Path) -> None:
    finder, end = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"'), job.directory / "end"
    own = job.keys
    job.start(0)
    job.keys = write_keys(tmp_path)
    job.start(1)
    job.keys = own
    words = ("sh", "-c", POLL, finder, end, "--host-discovery-script", finder)
    launch = job.launch(*words, options=("--min-workers", 2))
    launch.says("mpiboot: 2 -> 1 workers: - worker-1 (host key: shows ssh-ed25519")
    launch.says(f"listed: {job.name(0)}:2 \n")
    end.touch()
    assert launch.ends() == 0


def test_a_worker_that_comes_is_listed_once_its_host_key_was_seen(
    job: Job, tmp_path: Path, misbehaving: Callable[..., Server]
) -> None:
    finder, end = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"'), job.directory / "end"
    job.start(0)
    own, sent = job.keys, list[int]()
    job.keys = write_keys(tmp_path)
    job.start(1)
    job.keys = own
    relayed = relay(misbehaving, job.addresses[1], sent)
    job.tell(0)
    words = ("sh", "-c", POLL, finder, end, "--host-discovery-script", finder)
    launch = job.launch(*words, options=("--min-workers", 1))
    launch.says(f"listed: {job.name(0)}:2 \n")
    behind, job.addresses[1] = job.addresses[1], relayed
    job.tell(0, 1)
    greeting = len(GREETING)
    eventually(lambda: any(count > greeting for count in sent), "its key was not checked")
    job.stop(1)
    job.addresses[1] = behind
    job.start(1)
    launch.says("mpiboot: 1 -> 2 workers: + worker-1\n")
    # From now on its greeting is enough.
    before = len(sent)
    eventually(
        lambda: len(sent) >= before + 2 and max(sent[-2:]) <= greeting,
        "it is not probed, or every probe checks its key",
    )
    end.touch()
    assert launch.ends() == 0
    assert launch.stderr.count(" workers: ") == 1


def test_a_worker_that_comes_later_is_reached_as_the_first_ones_are(job: Job) -> None:
    finder, end = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"'), job.directory / "end"
    job.start(0)
    launch = job.launch("sh", "-c", POLL, finder, end, "--host-discovery-script", finder, options=("--min-workers", 1))
    launch.says(f"listed: {job.name(0)}:2 \n")
    job.start(1)
    launch.says(f"listed: {job.name(0)}:2 {job.name(1)}:2 \n")
    [config] = job.directory.glob("mpiboot-launch-*/ssh_config")
    for index in (0, 1):
        told = subprocess.run(["ssh", "-G", "-F", config, job.name(index)], capture_output=True, text=True, check=True)
        assert f"hostname {job.addresses[index]}\n" in told.stdout
        assert "serveraliveinterval 3\n" in told.stdout
    end.touch()
    assert launch.ends() == 0


def test_a_job_begins_with_as_many_workers_as_its_ranks_need(job: Job) -> None:
    finder = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"')
    job.start(1)
    launch = job.launch("true", "-np", "4", "--min-np", "2", "--host-discovery-script", finder)
    assert launch.ends() == 0, launch.stderr  # two slots of one worker


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("exit 3", "failed with exit code 3"),
        ("true", "printed nothing, though workers are ready"),
        ("echo one two", "printed 'one two' in line 1, which is not HOST or HOST:SLOTS"),
        ("echo good:1; echo http://bad", "printed 'http://bad' in line 2: slots must be a number from 1 up"),
        ("echo host:0", "printed 'host:0' in line 1: slots must be a number from 1 up"),
    ],
)
def test_a_script_that_does_not_list_hosts_ends_the_job_before_it_starts(job: Job, text: str, fault: str) -> None:
    finder = script(job, text)
    job.start(0, 1)
    launch = job.launch("sh", "-c", "echo started", "--host-discovery-script", finder)
    assert launch.ends() == 2
    assert launch.stdout == ""
    assert f"mpiboot: the discovery script {finder} {fault}" in launch.stderr


def test_a_script_that_does_not_exist_is_an_error(job: Job) -> None:
    job.start(0, 1)
    launch = job.launch("true", "--host-discovery-script", job.directory / "missing")
    assert launch.ends() == 2
    assert "missing failed with exit code 127" in launch.stderr


def test_a_shell_may_make_the_script_that_it_names(job: Job) -> None:
    job.start(0, 1)
    made = job.directory / "made-later"
    launch = job.launch("sh", "-c", f"echo 'echo host' >{made}; sh {made} --host-discovery-script {made}")
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout == "host\n"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--min-np", "3", "--max-np", "2"), "--min-np 3 is more than --max-np 2"),
        (("-np", "4", "--max-np", "2"), "-np 4 is more than --max-np 2"),
        (("-np", "1", "--min-np", "2"), "-np 1 is less than --min-np 2"),
    ],
)
def test_impossible_numbers_are_refused_at_once(job: Job, words: tuple[str, ...], fault: str) -> None:
    launch = job.launch("true", *words, "--host-discovery-script", "/etc/mpi/discover_hosts.sh")
    assert launch.ends() == 2
    assert fault in launch.stderr


def test_hosts_without_slots_are_refused_at_once(job: Job) -> None:
    job.slots = 0
    job.write()
    launch = job.launch("true", "--host-discovery-script", "/etc/mpi/discover_hosts.sh")
    assert launch.ends() == 2
    assert "slotsPerWorker is 0" in launch.stderr


def test_a_job_that_must_grow_first_says_so(job: Job) -> None:
    launch = job.launch("true", "--min-np", "6", "--host-discovery-script", "x", options=("--init-timeout", 1))
    assert launch.ends() == 124
    assert "--min-np 6 needs 3 workers, but the job has 2 workers with 2 slots each; waiting for it" in launch.stderr


def test_a_job_that_can_start_but_not_begin_to_train_says_so(job: Job) -> None:
    finder = script(job, 'cat "$MPIBOOT_LIVE_HOSTS"')
    job.start(0, 1)
    launch = job.launch("true", "-np", "6", "--min-np", "2", "--host-discovery-script", finder)
    assert launch.ends() == 0, launch.stderr
    assert "-np 6 needs 3 workers, but the job has 2 workers with 2 slots each; waiting for it" in launch.stderr


def test_a_horovodrun_for_hosts_of_a_guide_is_refused_in_one_line(job: Job) -> None:
    own = job.directory / "horovodrun"
    own.write_text("#!/bin/sh\necho runs\n")
    own.chmod(0o755)
    job.start(0, 1)
    launch = job.launch(own, "-np", "4", "-H", "no-such-host.invalid:2,b:2", "python", "train.py")
    assert launch.ends() == 2
    last = launch.stderr.splitlines()[-1]
    assert last == (
        "mpiboot: horovodrun -H names 'no-such-host.invalid', which is not a host of this job; leave -H out and write: "
        f"horovodrun -np 4 --hostfile {job.hostfile} ..."
    )
    hosts = f"{job.name(0)}:2,pi-worker-1:2,localhost:1"
    fine = job.launch(own, "-np", "4", "-H", hosts, "python", "train.py", "-H", "x")
    assert (fine.ends(), fine.stdout) == (0, "runs\n")


def test_options_of_the_user_for_horovodrun_stay() -> None:
    plain = ("/opt/bin/horovodrun", "-np", "2", "python", "train.py")
    defaults = ("--blacklist-cooldown-range", "5", "20", "--slots-per-host", "4")
    interface = ("--network-interface", "eth0")
    assert horovod.completed(plain, 4, "eth0") == (plain[0], *defaults, *interface, *plain[1:])
    assert horovod.completed(plain, 4, "") == (plain[0], *defaults, *plain[1:])
    given = ("horovodrun", "--blacklist-cooldown-range", "1", "2", "--slots-per-host=1", "--network-interfaces=x", "a")
    assert horovod.completed(given, 4, "eth0") == given
    assert horovod.completed(("python", "train.py"), 4, "eth0") == ("python", "train.py")
    assert horovod.with_defaults({"HOROVOD_GLOO_TIMEOUT_SECONDS": "60"})["HOROVOD_GLOO_TIMEOUT_SECONDS"] == "60"
    assert horovod.with_defaults({})["HOROVOD_GLOO_TIMEOUT_SECONDS"] == "30"
    ours = {"MPIBOOT_HOROVOD_JOINERS": "awaited"}
    assert horovod.with_defaults(ours)["HOROVOD_GLOO_TIMEOUT_SECONDS"] == "4"


def test_the_script_is_found_in_a_command_line() -> None:
    assert discovery.named(["horovodrun", "--host-discovery-script", "/x", "python"]) == "/x"
    assert discovery.named(["horovodrun", "--host-discovery-script=/x"]) == "/x"
    assert discovery.named(["bash", "-c", "horovodrun --host-discovery-script /x"]) == ""
