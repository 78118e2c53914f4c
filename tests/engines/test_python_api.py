"""`mpiboot.run` for scripts, notebooks and tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import mpiboot
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import docker


@pytest.fixture
def openmpi(image: Callable[[str], str]) -> str:
    return image("openmpi")


def test_a_result_holds_exit_code_output_and_name(openmpi: str) -> None:
    found = mpiboot.run("python3 -m mpiboot.demo", openmpi, n=4, workers=2)
    assert found.exit_code == 0
    assert sorted(line.split()[-1] for line in found.stdout.splitlines() if line.startswith("rank ")) == [
        f"{found.job}-worker-{index}" for index in (0, 0, 1, 1)]  # fmt: skip
    assert "2 of 2 workers ready" in found.stderr


def test_variables_names_and_input_reach_the_program(openmpi: str) -> None:
    words = ["sh", "-c", 'read line; echo "$A $line"']
    found = mpiboot.run(words, openmpi, n=1, env={"A": "x = y"}, name="named", input="from here\n")
    assert (found.job, found.stdout) == ("named", "x = y from here\n")


def test_input_that_the_program_does_not_read_is_no_error(openmpi: str) -> None:
    assert mpiboot.run("true", openmpi, input="x" * 1_000_000).exit_code == 0


def test_a_job_that_fails_raises_an_error_with_its_last_lines(openmpi: str) -> None:
    with pytest.raises(mpiboot.JobError) as caught:
        mpiboot.run(["sh", "-c", "echo what went wrong >&2; exit 5"], openmpi)
    assert caught.value.result.exit_code == 5
    assert "ended with exit code 5" in str(caught.value)
    assert "what went wrong" in str(caught.value)
    assert mpiboot.run(["sh", "-c", "exit 5"], openmpi, check=False).exit_code == 5


def test_a_job_that_takes_too_long_is_ended_and_leaves_nothing(
    openmpi: str, docker_engine: docker.DockerClient
) -> None:
    with pytest.raises(mpiboot.JobTimeoutError):
        mpiboot.run("sleep 600", openmpi, name="too-long", timeout=5, options=["--verbose"])
    assert [each for each in docker_engine.containers.list(all=True) if "too-long" in str(each.name)] == []


def test_a_manifest_runs_and_echo_prints_as_it_comes(
    openmpi: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init = [sys.executable, "-m", "mpiboot", "init", "-o", "-", "--image", openmpi, "--name", "from-a-file"]
    text = subprocess.run(init, capture_output=True, text=True, check=True).stdout
    (tmp_path / "job.yaml").write_text(text)
    found = mpiboot.run(manifest="job.yaml", cwd=tmp_path, echo=True)
    assert found.job == "from-a-file"
    assert found.stdout == capsys.readouterr().out


def test_wrong_input_is_an_error_without_a_job(tmp_path: Path) -> None:
    with pytest.raises(mpiboot.UserError, match="needs a command, or manifest=FILE"):
        mpiboot.run()
    with pytest.raises(mpiboot.UserError, match="cannot read"):
        mpiboot.run(manifest=tmp_path / "none.yaml")
    with pytest.raises(AttributeError):
        mpiboot.no_such_name  # noqa: B018


def test_a_job_runs_from_another_thread(openmpi: str) -> None:
    found: list[mpiboot.Result] = []
    thread = threading.Thread(target=lambda: found.append(mpiboot.run("hostname", openmpi)))
    thread.start()
    thread.join()
    assert found[0].exit_code == 0


def test_ctrl_c_ends_the_job_and_leaves_nothing(openmpi: str, docker_engine: docker.DockerClient) -> None:
    script = f"import mpiboot; mpiboot.run('sleep 600', {openmpi!r}, name='interrupted', echo=True)"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "workers ready" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == -signal.SIGINT, rest
    assert "KeyboardInterrupt" in rest
    assert [each for each in docker_engine.containers.list(all=True) if "interrupted" in str(each.name)] == []


def test_the_example_for_pytest_passes(openmpi: str) -> None:
    assert openmpi
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "examples/pytest"]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
