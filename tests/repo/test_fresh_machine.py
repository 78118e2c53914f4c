"""README's first command on a fresh Debian that has only Python, make and git.

The machine is a container. It may not start a Docker engine, so this also tests a machine whose engine does not start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.containers.client import docker_cli

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker
    from docker.models.containers import Container

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = "mpiboot-fresh:bookworm"
CERTIFICATES = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        os.environ.get("CI") != "true" and "MPIBOOT_TEST_FRESH" not in os.environ,
        reason="downloads a whole Debian; run it with: MPIBOOT_TEST_FRESH=1 make test ARGS=tests/repo",
    ),
]


@pytest.fixture(scope="module")
def debian(docker_engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of Debian bookworm with python3, make and git, made from packages."""
    if not docker_engine.images.list(BASE):
        program = shutil.which("mmdebstrap")
        assert program, "needs mmdebstrap; get it with: make setup"
        archive = tmp_path_factory.mktemp("debian") / "bookworm.tar"
        packages = "--include=python3,make,git,ca-certificates"
        command = [program, "--variant=minbase", packages, "bookworm", str(archive)]
        subprocess.run(command, check=True, capture_output=True)
        with archive.open("rb") as stream:
            docker_engine.api.import_image_from_data(stream.read(), repository="mpiboot-fresh", tag="bookworm")
    return BASE


@pytest.fixture
def machine(docker_engine: docker.DockerClient, debian: str, tmp_path: Path) -> Iterator[Container]:
    """A running container with a clone in /home/clone. It trusts the same certificates as this machine."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    container = docker_engine.containers.run(
        debian, ["sleep", "1000"], detach=True, init=True, name=f"mpiboot-fresh-{uuid.uuid4().hex[:8]}",
        environment=dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"), "/ca.crt"),
    )
    try:
        for source, target in ((clone, "/home/clone"), (CERTIFICATES, "/ca.crt")):
            copy = [docker_cli(), "cp", str(source), f"{container.name}:{target}"]
            copied = subprocess.run(copy, capture_output=True)
            assert copied.returncode == 0, copied.stderr
        yield container
    finally:
        container.remove(force=True)


def execute(machine: Container, *command: str, user: str = "root") -> tuple[int, str]:
    """The exit code and the output of a command in the clone."""
    inside = [docker_cli(), "exec", "--user", user, "--workdir", "/home/clone", str(machine.name), *command]
    done = subprocess.run(inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def test_make_demo_runs_a_job_where_no_engine_can_start(machine: Container) -> None:
    code, output = execute(machine, "make", "demo")
    assert code == 0, output
    assert "installing the Debian packages" in output
    assert "the Docker engine did not start" in output
    assert "rank 3 of 4" in output
    assert "pi is 3.14159265" in output
    assert "Traceback" not in output
    again, output = execute(machine, "make", "demo")
    assert again == 0, output
    assert "installing the Debian packages" not in output


def test_without_root_one_line_names_the_packages_to_install(machine: Container) -> None:
    execute(machine, "chown", "-R", "nobody", "/home/clone")
    code, output = execute(machine, "make", "demo", user="nobody")
    assert code != 0
    line = next(line for line in output.splitlines() if line.startswith("setup: Python's venv is missing"))
    assert "sudo apt-get install python3.11-venv openssh-server openssh-client docker.io" in line
    assert "Traceback" not in output
