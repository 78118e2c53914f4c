"""Downloads before the run and uploads after it, with a real S3 server; and every way in which they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bootstrap.processes import eventually
from tests.s3 import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.bootstrap.conftest import Job, Server
    from tests.s3 import Store


def fetching(uri: str, directory: Path, store: Store) -> tuple[object, ...]:
    return ("--download-from", uri, "--download-to", directory, "--data-keys", store.keys)


def storing(directory: Path, uri: str, store: Store) -> tuple[object, ...]:
    return ("--upload-from", directory, "--upload-to", uri, "--data-keys", store.keys)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An S3 server of this machine."""
    with running("127.0.0.1", tmp_path_factory.mktemp("s3")) as store:
        yield store


def test_the_command_finds_its_data_and_leaves_its_results(job: Job, store: Store, tmp_path: Path) -> None:
    job.start(0, 1)
    for key in ("in/a.txt", "in/deep/b.txt", "in-old/c.txt"):
        store.put(key, f"this is {key}")
    here = tmp_path / "data"
    script = f"cd {here} && find . -type f | sort && mkdir -p out/deep && cat a.txt > out/deep/copy; env | grep -c AWS_"
    results = storing(here / "out", "s3://bucket/results/default/pi/pi-master", store)
    launch = job.launch("sh", "-c", script, options=(*fetching("s3://bucket/in", here, store), *results))
    assert launch.ends() == 1, launch.stderr  # grep's: it found no key in the environment
    assert launch.stdout == "./a.txt\n./deep/b.txt\n0\n"
    assert store.get("results/default/pi/pi-master/deep/copy") == "this is in/a.txt"
    assert "fetched 2 files (0.0 MB) from s3://bucket/in" in launch.stderr
    assert "stored 1 file (0.0 MB)" in launch.stderr


def test_a_single_object_and_a_whole_bucket_can_be_fetched(job: Job, store: Store, tmp_path: Path) -> None:
    job.start(0, 1)
    store.put("one/file.bin", "x" * 100)
    for uri, path in (("s3://bucket/one/file.bin", "file.bin"), ("s3://bucket", "one/file.bin")):
        launch = job.launch("cat", tmp_path / "got" / path, options=fetching(uri, tmp_path / "got", store))
        assert (launch.ends(), launch.stdout) == (0, "x" * 100), launch.stderr


def test_what_cannot_be_fetched_ends_the_launch_with_74_before_anything_else(
    job: Job, store: Store, tmp_path: Path
) -> None:
    for uri, reason in (
        ("s3://bucket/nothing", "cannot fetch s3://bucket/nothing: the bucket has no object"),
        ("s3://no-such-bucket/x", "cannot fetch s3://no-such-bucket/x: An error occurred (No"),
    ):
        launch = job.launch("true", options=fetching(uri, tmp_path / "data", store))
        assert launch.ends() == 74
        assert reason in launch.stderr
        assert launch.stderr.count("\n") == 1


def test_an_object_cannot_leave_its_directory(job: Job, store: Store, tmp_path: Path) -> None:
    store.put("bad/%2e%2e/out", "x")
    launch = job.launch("true", options=fetching("s3://bucket/bad", tmp_path / "data", store))
    assert launch.ends() == 74
    assert "its name leads out of" in launch.stderr


def test_the_commands_failure_is_logged_before_that_of_the_data(job: Job, store: Store, tmp_path: Path) -> None:
    job.start(0, 1)
    (tmp_path / "out").write_text("x")
    for command, code in (("true", 74), ("false", 1)):
        launch = job.launch(command, options=storing(tmp_path / "out", "s3://no-such-bucket/x", store))
        assert launch.ends() == code
        assert f"cannot store {tmp_path}/out to s3://no-such-bucket/x: " in launch.stderr


def test_a_secret_without_a_key_is_one_line(job: Job, tmp_path: Path) -> None:
    launch = job.launch("true", options=(
        "--download-from", "s3://bucket/x", "--download-to", tmp_path, "--data-keys", tmp_path))  # fmt: skip
    assert launch.ends() == 74
    assert launch.stderr == (f"mpiboot: the S3 Secret (mounted at {tmp_path}) has no key AWS_ACCESS_KEY_ID; add it\n")


def test_without_boto3_one_line_says_how_to_add_it(job: Job, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "boto3.py").write_text("raise ImportError('not in this image')")
    launch = job.launch("true", env={"PYTHONPATH": str(hidden)}, options=(
        "--download-from", "s3://bucket/x", "--download-to", tmp_path))  # fmt: skip
    assert launch.ends() == 74
    assert "S3 data needs boto3, which is not in this image; add it in a Dockerfile FROM it: " in launch.stderr
    assert launch.stderr.count("\n") == 1


def test_a_signal_ends_a_transfer(job: Job, misbehaving: Callable[..., Server], tmp_path: Path) -> None:
    silent = misbehaving(lambda connection: connection.recv(1 << 20) and connection.recv(1))
    for name, value in {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "AWS_ENDPOINT_URL": f"http://{silent.address}:{silent.port}",
    }.items():
        (tmp_path / name).write_text(value)
    launch = job.launch("true", options=(
        "--download-from", "s3://bucket/x", "--download-to", tmp_path / "data", "--data-keys", tmp_path))  # fmt: skip
    eventually(lambda: silent.connections)
    launch.kill()
    assert launch.ends() == 143
    assert "ended by SIGTERM while data was moved" in launch.stderr


def test_half_a_pair_is_refused(job: Job) -> None:
    launch = job.launch("true", options=("--download-from", "s3://bucket/x"))
    assert launch.ends() == 2
    assert "--download-from and --download-to go together" in launch.stderr


def test_a_worker_has_its_data_before_ssh_listens_and_stores_its_own(job: Job, store: Store, tmp_path: Path) -> None:
    """A whole job without an operator: the workers end when the launcher has ended its command."""
    store.put("shared/a", "for each")
    for index in (0, 1):
        here = tmp_path / f"worker-{index}"
        pairs = {
            "DOWNLOAD_FROM": "s3://bucket/shared",
            "DOWNLOAD_TO": here,
            "DATA_KEYS": store.keys,
            "UPLOAD_FROM": here / "out",
            "UPLOAD_TO": f"s3://bucket/ends/worker-{index}",
            "LAUNCHER": "localhost",
        }
        env = {f"MPIBOOT_{name}": str(value) for name, value in pairs.items()}
        job.start(index, env={**env, "WHERE": str(here)})
        assert (here / "a").read_text() == "for each"
    script = "for host in %s; do ssh $host 'mkdir $WHERE/out; cat $WHERE/a > $WHERE/out/copy' || exit; done"
    launch = job.launch("sh", "-c", script % " ".join(job.names), options=("--end-workers",))
    assert launch.ends() == 0, launch.stderr
    for index, worker in job.workers.items():
        assert worker.ends() == 0, worker.stderr
        assert "the launcher has ended; this worker ends" in worker.stderr
        assert store.get(f"ends/worker-{index}/copy") == "for each"
