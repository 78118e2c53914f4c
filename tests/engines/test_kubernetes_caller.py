"""What a job on a cluster gets of its caller, and how: the working directory, stdin, output as it comes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from mpiboot.engines.kubernetes import state_notes
from mpiboot.engines.kubernetes.namespace_jobs import JobId
from mpiboot.engines.kubernetes.snapshot import Snapshot
from mpiboot.engines.output import Output
from mpiboot.job.errors import UserError
from tests.engines.pretended_cluster import OLD, Pretended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpiboot.engines.kubernetes.namespace_jobs import NamespaceJobs

    Start = Callable[..., subprocess.Popen[bytes]]

PATIENCE = 60.0
LAUNCH = """
import sys
from mpiboot.bootstrap.process.signals import Signals
from mpiboot.bootstrap.workdir import hand_on
import os, subprocess
place = hand_on.Expected(os.environ["THERE"], 30)
hand_on.bring(place, [], "", os.environ, Signals(), lambda text: print("mpiboot:", text, file=sys.stderr, flush=True))
code = subprocess.run(sys.argv[1:], cwd=os.environ["THERE"]).returncode
if patterns := os.environ.get("MPIBOOT_GIVE"):
    from mpiboot.bootstrap.workdir import results
    log = lambda text: print("mpiboot:", text, file=sys.stderr, flush=True)
    results.offer(os.environ["THERE"], patterns, [], "", os.environ, Signals(), 30, log)
sys.exit(code)
"""  # a launcher without workers and MPI



@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


@pytest.fixture
def cluster(there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    env = {"MPIBOOT_RUN_DIR": str(tmp_path / "run"), "THERE": str(there)}
    env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = Pretended([], env, tmp_path)
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "nowhere", "users": [],
        "clusters": [{"name": "pretended", "cluster": {"server": f"http://127.0.0.1:{made.port}"}},
                     {"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "pretended", "context": {"cluster": "pretended", "user": ""}},
                     {"name": "nowhere", "context": {"cluster": "nowhere", "user": ""}}],
    }  # fmt: skip
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield made
    made.close()


@pytest.fixture
def start(cluster: Pretended, here: Path) -> Iterator[Start]:
    """Runs a program as the launcher of a job that was started in `here`."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*words: str, options: tuple[str, ...] = (), stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        command = [*words] if "--no-workdir" in options else [sys.executable, "-c", LAUNCH, *words]
        cluster.launcher = command
        argv = [sys.executable, "-m", "mpiboot", "run", "--engine", "kubernetes", "--context", "pretended", *options]
        process = subprocess.Popen(
            [*argv, "mpiboot/openmpi", "--", *words], cwd=here, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes], given: bytes | None = None) -> tuple[int, str, str]:
    out, err = process.communicate(given, timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


def test_the_directory_is_there_and_what_is_ignored_is_not(start: Start, here: Path, there: Path) -> None:
    (here / "run.sh").write_text("#!/bin/sh\ncat deep/data.txt\nfind . | sort\n")
    (here / "run.sh").chmod(0o755)
    for path in ("deep/data.txt", ".git/config", "build/a.o", "build/keep.o", "logs/x.log", "deep/logs/y.log"):
        (here / path).parent.mkdir(parents=True, exist_ok=True)
        (here / path).write_text(f"this is {path}\n")
    (here / "absolute").symlink_to(here / "deep/data.txt")
    (here / "away").symlink_to("/etc")
    os.mkfifo(here / "pipe")
    (here / ".mpibootignore").write_text("# comment\n*.o\n!keep.o\n/logs\n")
    code, out, err = ended(start("./run.sh"))
    assert code == 0, err
    assert out.splitlines() == [
        "this is deep/data.txt", ".", "./.mpibootignore", "./absolute", "./build", "./build/keep.o", "./deep",
        "./deep/data.txt", "./deep/logs", "./deep/logs/y.log", "./run.sh",
    ]  # fmt: skip
    assert "warning: not sent: away (a link that leads out), pipe (no file)" in err
    assert (there / "absolute").readlink() == Path("deep/data.txt")


@pytest.mark.parametrize("old", [False, True])
def test_a_connection_that_breaks_sends_the_directory_again(
    start: Start, cluster: Pretended, here: Path, *, old: bool
) -> None:
    if old:
        cluster.protocols = [OLD]
    (here / "large").write_bytes(os.urandom(3_000_000))
    cluster.cut_after = [2_000_000, 100]
    code, out, err = ended(start("sha256sum", "large"))
    assert code == 0, err
    assert out == subprocess.check_output(["sha256sum", "large"], cwd=here, text=True)
    assert err.count("mpiboot sends it again") == 2


def test_a_launcher_that_cannot_store_it_ends_the_run(start: Start, cluster: Pretended, tmp_path: Path) -> None:
    (tmp_path / "run").touch()  # no directory
    code, _, err = ended(start("true"))
    assert code == 2
    assert err.splitlines()[-1].startswith("mpiboot: the launcher cannot take the working directory: no directory for")
    assert cluster.deleted.is_set()


def test_a_right_that_is_missing_is_named(start: Start, cluster: Pretended) -> None:
    cluster.forbidden = {"exec"}
    code, _, err = ended(start("true"))
    assert (code, cluster.deleted.is_set()) == (2, True)
    assert "you need the right to create pods/exec in namespace default" in err


def test_a_directory_that_is_too_large_is_refused_before_the_job_is_made(
    start: Start, cluster: Pretended, here: Path
) -> None:
    with (here / "huge").open("wb") as file:
        file.truncate(1_100_000_000)
    code, _, err = ended(start("true"))
    assert code == 2
    assert f"{here} has more than 1 GB" in err
    assert "huge (1100 MB)" in err
    assert cluster.job == {}
    (here / ".mpibootignore").write_text("huge\n")
    assert ended(start("true"))[0] == 0


def test_output_comes_as_it_is_written_and_in_two_streams(start: Start) -> None:
    process = start("sh", "-c", r"printf '10%%\r20%%'; echo oops >&2; read x; printf '\r30%%\n'; exit 7",
                    stdin=subprocess.PIPE)  # fmt: skip
    assert process.stdout
    got = b""
    while b"20%" not in got:
        got += os.read(process.stdout.fileno(), 100)
    assert got == b"10%\r20%"
    code, out, err = ended(process, b"go\n")
    assert (code, out) == (7, "\r30%\n")
    assert "oops" in err


@pytest.mark.parametrize("options", [(), ("--no-workdir",)])
@pytest.mark.parametrize("old", [False, True])
def test_stdin_reaches_the_program_to_its_end(
    start: Start, cluster: Pretended, options: tuple[str, ...], *, old: bool
) -> None:
    if old:
        cluster.protocols = [OLD]
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    code, out, err = ended(start("sha256sum", options=options, stdin=subprocess.PIPE), text)
    wanted = subprocess.check_output(["sha256sum"], input=text).decode()
    assert (code, out) == (0, wanted), err


def test_without_the_right_to_attach_input_is_refused_and_a_job_without_input_runs(
    start: Start, cluster: Pretended, tmp_path: Path
) -> None:
    cluster.forbidden = {"attach"}
    (tmp_path / "input").write_text("text")
    with (tmp_path / "input").open() as file:
        code, _, err = ended(start("cat", stdin=file.fileno()))
    assert code == 2
    assert "the right to create pods/attach" in err
    code, out, err = ended(start("echo", "whole"))
    assert (code, out) == (0, "whole\n"), err


def test_nothing_is_lost_or_doubled_when_the_connection_of_the_output_breaks(start: Start, cluster: Pretended) -> None:
    cluster.cut_after = []
    script = "i=0; while [ $i -lt 300 ]; do echo line $i; echo error $i >&2; i=$((i+1)); sleep 0.005; done; printf end"
    process = start("sh", "-c", script)
    assert process.stdout
    first = process.stdout.readline()
    cluster.cut_after = [0]
    code, out, err = ended(process)
    assert code == 0, err
    lines = (first.decode() + out).splitlines() + err.splitlines()
    # The log has both streams in one, so errors after the break are in stdout.
    assert sorted(line for line in lines if line.startswith("line ")) == sorted(f"line {n}" for n in range(300))
    assert sorted(line for line in lines if line.startswith("error ")) == sorted(f"error {n}" for n in range(300))
    assert lines.count("end") == 1


def test_results_come_back_and_what_did_not_change_is_left_alone(start: Start, here: Path) -> None:
    (here / "out").mkdir()
    for name in ("input.dat", "out/old.dat", "changed.dat"):
        (here / name).write_text("as sent\n")
    script = "mkdir -p out/deep && echo new > out/deep/new.txt && echo more >> changed.dat && touch not.asked; exit 3"
    process = start("sh", "-c", script, options=("--fetch", "*.dat", "--fetch", "out/"))
    code, _, err = ended(process)
    assert code == 3, err
    assert "fetched 2 files (0.0 MB)" in err
    assert (here / "out/deep/new.txt").read_text() == "new\n"
    assert (here / "changed.dat").read_text() == "as sent\nmore\n"
    assert not (here / "not.asked").exists()


def test_results_are_asked_for_again_when_the_connection_breaks(
    start: Start, cluster: Pretended, here: Path
) -> None:
    cluster.cut_answers_after = [100_000]
    code, _, err = ended(start("sh", "-c", "head -c 3000000 /dev/urandom > result", options=("--fetch", "result")))
    assert code == 0, err
    assert "the connection for the results broke" in err
    assert (here / "result").stat().st_size == 3_000_000


def test_results_that_cannot_be_written_here_are_a_failure(start: Start, here: Path) -> None:
    (here / "taken").mkdir()
    (here / "taken" / "file").touch()
    (here / ".mpibootignore").write_text("taken\n")
    code, _, err = ended(start("touch", "taken", options=("--fetch", "taken")))
    assert code == 74
    assert "cannot write the contents of taken: Is a directory" in err


def test_ctrl_c_while_the_directory_is_sent_deletes_the_job(start: Start, cluster: Pretended, here: Path) -> None:
    (here / "large").write_bytes(os.urandom(50_000_000))
    process = start("sleep", "100")
    deadline = time.monotonic() + PATIENCE
    while not cluster.job:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(2)
    code, _, err = ended(process)
    assert code == 130, err
    assert cluster.deleted.is_set()
    assert "Traceback" not in err


def test_a_detached_job_has_the_directory_and_stays(start: Start, cluster: Pretended, here: Path, there: Path) -> None:
    (here / "data").write_text("sent")
    code, out, err = ended(start("cat", "data", options=("--detach", "--name", "stays")))
    assert (code, out) == (0, "stays\n"), err
    assert "mpiboot logs -f stays --engine kubernetes -n default" in err
    assert not cluster.deleted.is_set()
    deadline = time.monotonic() + PATIENCE
    while not (there / "data").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_cause_of_a_failed_pull_is_named_once(start: Start, cluster: Pretended) -> None:
    text = (
        'failed to pull and unpack image "docker.io/mpiboot/openmpi:latest": failed to do request: Head '
        '"https://registry.example/v2": dial tcp: lookup registry.example on 10.96.0.10:53: no such host'
    )
    cluster.waiting = {"reason": "ErrImagePull", "message": text}
    process = start("true", options=("-v",))
    assert process.stderr
    seen = b""
    while b"lookup registry.example" not in seen:
        seen += os.read(process.stderr.fileno(), 1000)
    cluster.waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "x": ErrImagePull: {text}'}
    answers = cluster.answers
    while cluster.answers < answers + 4:
        time.sleep(0.02)
    cluster.waiting = {"reason": "ErrImagePull", "message": "x: i/o timeout"}
    while b"i/o timeout" not in seen:
        seen += os.read(process.stderr.fileno(), 1000)
    process.send_signal(2)
    code, _, err = ended(process)
    assert code == 130
    assert (seen.decode() + err).count("launcher: cannot pull mpiboot/openmpi: no such host: registry.example\n") == 1
    assert cluster.deleted.is_set()


def test_a_pull_that_fails_for_long_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_notes, "PULL_WITHIN", 0.0)
    job = {"metadata": {}, "status": {"state": "Waiting", "reason": "worker-0: cannot pull x: no such host"}}
    notes = state_notes.StateNotes(cast("NamespaceJobs", None), Output(), verbose=False)
    asyncio.run(notes.update(JobId("job", "u1"), Snapshot(job, (), {})))
    time.sleep(0.001)
    with pytest.raises(UserError, match="worker-0: cannot pull x: no such host; mpiboot ends the job"):
        asyncio.run(notes.update(JobId("job", "u1"), Snapshot(job, (), {})))
