"""`mpiboot run` on a Docker engine: real images, real containers."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import docker

    from tests.engines.conftest import Running

pytestmark = [pytest.mark.usefixtures("nothing_left")]
DOCKER = ("--engine", "docker")


@pytest.fixture
def own(image: Callable[[str], str]) -> str:
    return image("openmpi")


@pytest.fixture
def run(mpiboot: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`mpiboot run` on Docker."""
    return lambda *argv, **options: mpiboot("run", *DOCKER, *argv, **options)


def test_pi_is_computed_by_ranks_spread_over_the_workers(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, name: str, pi: str, tmp_path: Path
) -> None:
    picture = tmp_path / "timeline.svg"
    done = run("-n", "4", "--workers", "2", "--name", name, "-v", "--timeline", str(picture), own, "--",
               "python3", "-c", pi)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"rank (\d) host (\S+) worker (\d) pi (\S+)", done.stdout)
    assert sorted(rank for rank, *_ in found) == ["0", "1", "2", "3"]
    hosts = [host for _, host, _, _ in found]
    assert sorted(hosts) == [f"{name}-worker-0"] * 2 + [f"{name}-worker-1"] * 2
    assert {value for *_, value in found} == {"3.14159265"}
    assert re.search(r"^ *[\d.]+ s .* ready$", done.stderr, re.MULTILINE)
    assert picture.read_text().startswith("<svg") or "<svg" in picture.read_text()[:200]


def test_quiet_leaves_only_what_the_launcher_prints(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str]
) -> None:
    done = run("-q", "-f", manifest("printf 'no newline'; exit 7", own))
    assert (done.returncode, done.stdout) == (7, "no newline")
    assert "worker-0 |" not in done.stderr


def test_pods_with_a_read_only_root_and_any_user_run_as_they_say(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str], name: str
) -> None:
    hardened = {
        "securityContext": {"readOnlyRootFilesystem": True, "runAsUser": 12345, "runAsGroup": 0,
                            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "fast", "mountPath": "/fast"}],
        "resources": {"limits": {"memory": "256Mi", "cpu": "1"}},
    }  # fmt: skip
    volumes = {"volumes": [{"name": "tmp", "emptyDir": {}},
                           {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}]}  # fmt: skip
    script = (
        "id -u; touch /tmp/a /fast/b && echo writable; touch /x 2>/dev/null || echo read-only; "
        "grep -c CapEff:.*0000000000000000 /proc/self/status; grep NoNewPrivs /proc/self/status; "
        "stat -c '%a %n' /home/mpiuser/.ssh/id_rsa; grep ' /fast ' /proc/mounts; cat /sys/fs/cgroup/memory.max "
        "/sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; cat /etc/mpiboot/addresses; hostname; "
        f"ssh {name}-worker-0.{name}.default.svc 'id -u; hostname'"
    )
    job = manifest(script, own, launcher=hardened, pod=volumes, worker=hardened, worker_pod=volumes)
    done = run("-f", job)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:5] == ["12345", "writable", "read-only", "1", "NoNewPrivs:\t1"]
    assert lines[5] == "444 /home/mpiuser/.ssh/id_rsa"
    assert "size=4096k" in lines[6]
    assert lines[7] == str(256 * 2**20)
    assert re.fullmatch(rf"{name}-worker-0\.{name}\.default\.svc \d+\.\d+\.\d+\.\d+", lines[8])
    assert lines[9:] == [f"{name}-launcher", "12345", f"{name}-worker-0"]


def test_a_launcher_that_cannot_wait_starts_when_the_workers_are_ready(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str], name: str
) -> None:
    ssh = f"ssh -p 2222 -o StrictHostKeyChecking=yes {name}-worker-1.{name}.default.svc hostname"
    late = {"command": ["sh", "-c", "sleep 1; exec mpiboot worker"]}
    job = manifest(f"{ssh}; tr '\\0' ' ' </proc/1/cmdline", own, workers=2, worker=late,
                   annotations={"mpiboot.dev/launch": "gate", "mpiboot.dev/host-keys": "verify"})  # fmt: skip
    done = run("-f", job)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{name}-worker-1"
    assert "mpiboot launch" not in done.stdout


def test_workers_that_never_listen_are_named_in_time(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str], name: str
) -> None:
    job = manifest("echo never", own, worker={"command": ["sleep", "100"]},
                   launcher={"env": [{"name": "MPIBOOT_INIT_TIMEOUT", "value": "2"}]},
                   annotations={"mpiboot.dev/launch": "gate"})  # fmt: skip
    done = run("-f", job)
    assert (done.returncode, done.stdout) == (124, "")
    assert re.search(r"1 of 1 workers not ready after [\d.]+ s \(limit 2 s\)\n", done.stderr)
    assert f"  {name}-worker-0: nothing listens" in done.stderr


def test_a_failed_launcher_is_started_again_as_often_as_the_job_allows(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str]
) -> None:
    done = run("-f", manifest("echo try; exit 3", own, restart="OnFailure", backoffLimit=1))
    assert (done.returncode, done.stdout) == (3, "try\ntry\n")
    assert "attempt 1 of 2" in done.stderr


def test_a_dead_worker_ends_the_job_and_its_last_lines_are_printed(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str]
) -> None:
    dying = {"command": ["sh", "-c", "echo this is why; exit 5"]}
    done = run("-f", manifest("exec sleep 100", own, worker=dying, annotations={"mpiboot.dev/launch": "off"}))
    assert done.returncode == 143, done.stderr
    assert re.search(r"worker-0 ended with exit code 5; its last lines:\n  this is why", done.stderr)


def test_a_worker_that_may_restart_is_started_again(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str]
) -> None:
    once = "test -e /tmp/again && exec mpiboot worker; touch /tmp/again; exit 4"
    done = run("-f", manifest("cat /etc/mpiboot/addresses; echo reached", own, worker={"command": ["sh", "-c", once]},
                              worker_restart="OnFailure"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("reached\n")
    assert "worker-0 ended with exit code 4" in done.stderr


def test_a_job_ends_at_its_deadline(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str]
) -> None:
    done = run("-f", manifest("exec sleep 100", own, activeDeadlineSeconds=4))
    assert done.returncode == 124
    assert "activeDeadlineSeconds of 4 s" in done.stderr


def test_a_second_job_of_the_same_name_is_refused_and_the_first_not_disturbed(
    start: Callable[..., Running], run: Callable[..., subprocess.CompletedProcess[str]], own: str,
    manifest: Callable[..., str], name: str,
) -> None:  # fmt: skip
    job = manifest("echo up; exec sleep 100", own)
    first = start("run", *DOCKER, "-f", job)
    first.wait_for("up")
    second = run("-f", job)
    assert second.returncode == 2
    assert f"a job named {name} is running; see: mpiboot ps" in second.stderr
    assert first.process.poll() is None
    first.process.send_signal(2)
    assert first.end() == 130


def test_a_job_whose_terminal_was_killed_is_found_again(
    start: Callable[..., Running], mpiboot: Callable[..., subprocess.CompletedProcess[str]], own: str,
    manifest: Callable[..., str], name: str, nothing_left: Callable[[], None],
) -> None:  # fmt: skip
    running = start("run", *DOCKER, "-f", manifest("echo to stdout; echo to stderr >&2; exec sleep 100", own))
    running.wait_for("to stderr")
    running.process.kill()
    running.end()
    row = next(line for line in mpiboot("ps").stdout.splitlines() if line.startswith(f"{name} "))
    assert re.fullmatch(rf"{name} +docker +running +1 +\d+s +{own}", row)
    printed = mpiboot("logs", name)
    assert printed.stdout == "to stdout\n"
    assert "to stderr\n" in printed.stderr
    assert "worker-0 | " in printed.stderr
    follower = start("logs", "-f", "-q", name)
    follower.wait_for("to stdout")
    assert mpiboot("delete", name).returncode == 0
    nothing_left()
    assert follower.end() == 0


def test_a_path_of_this_machine_is_mounted_only_on_request(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str], tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "data").write_text("from outside")
    job = manifest("cat /d/data", own, launcher={"volumeMounts": [{"name": "d", "mountPath": "/d"}]},
                   pod={"volumes": [{"name": "d", "hostPath": {"path": str(tmp_path)}}]})  # fmt: skip
    refused = run("-f", job)
    assert refused.returncode == 2
    assert "--allow-host-path" in refused.stderr
    assert run("-f", job, "--allow-host-path").stdout == "from outside"


def test_an_image_that_no_registry_has_is_one_line(
    run: Callable[..., subprocess.CompletedProcess[str]], name: str
) -> None:
    done = run("--name", name, "127.0.0.1:1/no/such-image:1", "--", "true")
    assert done.returncode == 2
    assert "127.0.0.1:1/no/such-image:1 is not on this engine and cannot be pulled" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_misspelt_name_of_ours_leads_to_their_list(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run("mpiboot/opnempi", "--", "true")
    assert done.returncode == 2
    assert "mpiboot images list names ours" in done.stderr
    assert "images build opnempi" not in done.stderr


def test_a_program_that_is_not_there_ends_as_in_a_shell(
    run: Callable[..., subprocess.CompletedProcess[str]], own: str, manifest: Callable[..., str]
) -> None:
    job = manifest("", own, launcher={"command": ["/no/such/program"]}, annotations={"mpiboot.dev/launch": "off"})
    done = run("-f", job)
    assert done.returncode == 127
    assert "/no/such/program" in done.stderr


def test_a_reader_that_goes_away_ends_the_job(own: str, manifest: Callable[..., str]) -> None:
    job = manifest("while :; do echo more; sleep 0.01; done", own)
    argv = [sys.executable, "-m", "mpiboot", "run", *DOCKER, "-q", "-f", job]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "more\n"
        process.stdout.close()
        assert process.wait(60) == 141
        assert "Traceback" not in process.stderr.read()


def test_an_image_with_a_user_of_its_own_gets_the_keys_in_that_user_s_home(
    run: Callable[..., subprocess.CompletedProcess[str]], name: str, docker_engine: docker.DockerClient
) -> None:
    tag = build(docker_engine, FOREIGN / "guide")
    done = run("-n", "2", "--workers", "2", "--name", name, tag, "--", "hostname")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{name}-worker-0", f"{name}-worker-1"]
    assert f"{tag} has a user of its own: files that the job writes here belong to " in done.stderr


def test_two_jobs_at_once_do_not_meet(
    start: Callable[..., Running], own: str, name: str, pi: str, docker_engine: docker.DockerClient
) -> None:
    names = [f"{name}-{letter}" for letter in "ab"]
    jobs = [start("run", *DOCKER, "-n", "2", "--workers", "2", "--name", one, own, "--", "python3", "-c", pi)
            for one in names]  # fmt: skip
    for one, job in zip(names, jobs, strict=True):
        assert job.end(120) == 0, job.err
        assert {line.split()[3] for line in job.out} == {f"{one}-worker-0", f"{one}-worker-1"}
        of = {"label": f"mpiboot.dev/job={one}"}
        assert not docker_engine.networks.list(filters=of)
