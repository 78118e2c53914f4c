"""Builds with a real engine: what comes out, and that whatever goes wrong is one line and leaves nothing behind."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docker.errors import ImageNotFound

from mpiboot.containers.client import docker_cli
from mpiboot.images.build.build import Builder, CustomBase
from mpiboot.images.build.progress import Progress
from mpiboot.images.matrix import OWN, load
from tests.foreign.build import FOREIGN, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]
    Run = Callable[..., tuple[int, str]]
    Tag = Callable[[str], str]

REPOSITORY = Path(__file__).resolve().parents[2]
ROW = '[images]\nbroken = { runtime = "openmpi", accel = "cpu", kind = "runtime", arguments = { %s } }\n'


@pytest.fixture
def leftovers(docker_engine: docker.DockerClient, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment for a command after which no draft, container or temporary file may be left."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    containers = {container.id for container in docker_engine.containers.list(all=True, sparse=True)}
    yield {**os.environ, "TMPDIR": str(scratch)}
    drafts = [tag for one in docker_engine.images.list() for tag in one.tags if re.search(r"broken|slow", tag)]
    assert drafts == []
    assert list(scratch.iterdir()) == []
    after = docker_engine.containers.list(all=True, sparse=True, filters={"ancestor": "mpiboot/broken"})
    assert {container.id for container in after} <= containers


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of what went wrong, which must be our own and not a stack trace."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("mpiboot: ")
    return last


@pytest.mark.parametrize("name", ["openmpi", "kit"])
def test_building_again_changes_nothing(
    docker_engine: docker.DockerClient, image: Tag, mpiboot: Mpiboot, name: str
) -> None:
    image(name)
    assert mpiboot("images", "build", name).returncode == 0
    before = docker_engine.images.get(f"mpiboot/{name}").id
    done = mpiboot("images", "build", name)
    assert done.returncode == 0, done.stderr
    assert docker_engine.images.get(f"mpiboot/{name}").id == before


def test_labels_and_tags_tell_the_version_that_the_image_says(
    docker_engine: docker.DockerClient, image: Tag, run: Run
) -> None:
    found = docker_engine.images.get(image("mpich"))
    version = found.labels["org.opencontainers.image.version"]
    assert f"mpiboot/mpich:{version}" in found.tags
    assert version in run("mpiboot/mpich", "mpirun", "--version")[1]


def test_failed_step_is_shown_with_its_log_and_leaves_nothing(
    mpiboot: Mpiboot, image: Tag, leftovers: dict[str, str], tmp_path: Path
) -> None:
    image("openmpi")
    table = tmp_path / "mine.toml"
    table.write_text(ROW % 'MPI4PY = "0.0.1"')
    done = mpiboot("images", "--matrix", str(table), "build", "broken", env=leftovers)
    assert "the step 'mpi4py' failed" in one_line(done)
    assert "  broken | ERROR: No matching distribution found for mpi4py==0.0.1" in done.stderr
    assert "Setting up" not in done.stderr  # that is another step's log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_build_and_leaves_nothing(
    image: Tag, leftovers: dict[str, str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    image("openmpi")
    table = tmp_path / "mine.toml"
    # An argument of its own makes the step that takes longest run again.
    omit = f"libhwloc-plugins libamdhip64-5 libhsa-runtime64-1 x{time.time_ns()}"
    table.write_text(ROW % f'OMIT = "{omit}", MPI4PY = "0.0.1"')
    command = [sys.executable, "-m", "mpiboot", "images", "--matrix", str(table), "build", "broken"]
    build = subprocess.Popen(command, env=leftovers, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (running := builds_of(build.pid)):
        assert time.monotonic() < until
        assert build.poll() is None
        time.sleep(0.02)
    build.send_signal(number)
    _, said = build.communicate(timeout=60)
    assert build.returncode == code, said
    assert said.strip().splitlines()[-1].startswith("mpiboot: stopped")
    assert "Traceback" not in said
    assert not any(Path(f"/proc/{pid}").exists() for pid in running)


def builds_of(parent: int) -> list[int]:
    """The docker builds that a process has started."""
    lists = [task.read_text().split() for task in Path(f"/proc/{parent}/task").glob("*/children")]
    children = [int(pid) for one in lists for pid in one]
    return [pid for pid in children if b"build" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["build", "opnmpi"], "no image is called 'opnmpi'; did you mean openmpi"),
        (["build", "--accel", "cdua"], "no image is for 'cdua'; did you mean cuda?"),
        (["build", "--accel", "rocm"], "none of the images built by default is for rocm; name one of: openmpi-rocm"),
        (["--matrix", "none.toml", "list"], "none.toml: mpiboot cannot read the table of images: No such file"),
        (["build", "openmpi", "--tag", "x"], "--base, --tag and one NAME go together"),
        (["build", "--base", "x", "--tag", "x"], "--base, --tag and one NAME go together"),
        (["build", "openmpi", "--base", "mpiboot-test/none", "--tag", "x"], "mpiboot-test/none: "),
        (["build", "openmpi", "--base", "x", "--tag", "x@sha256:0"], "x@sha256:0 has a digest"),
        (["fragment", "opnmpi"], "no image is called 'opnmpi'"),
        (["sbom", "mpiboot-test/none"], "mpiboot-test/none: the engine has no such image"),
        (["load", "openmpi"], "give one of --kind CLUSTER and --containerd SOCKET"),
        (["push", "openmpi", "--registry", "127.0.0.1:1"], "127.0.0.1:1/mpiboot/openmpi"),
    ],
)
def test_wrong_input_is_one_line(
    mpiboot: Mpiboot, docker_engine: docker.DockerClient, argv: list[str], said: str
) -> None:
    assert docker_engine.ping()
    assert said in one_line(mpiboot("images", *argv))


@pytest.mark.parametrize(
    "argv", [["build", "openmpi", "--base", "mpiboot-test/shellless", "--tag", "x"], ["sbom", "mpiboot-test/shellless"]]
)
def test_an_image_without_a_shell_leaves_no_container(
    mpiboot: Mpiboot, docker_engine: docker.DockerClient, argv: list[str]
) -> None:
    tag = build(docker_engine, FOREIGN / "shellless")
    said = one_line(mpiboot("images", *argv))
    assert "/bin/sh" in said
    assert 'exec: "/bin/sh"' in said
    left = docker_engine.containers.list(all=True, filters={"ancestor": tag}, ignore_removed=True)
    assert [container.name for container in left if str(container.name).startswith("mpiboot-look-")] == []
    assert [container.name for container in left if container.status == "created"] == []


@pytest.mark.parametrize("argv", [["build", "openmpi"], ["push", "--registry", "r"], ["sbom", "mpiboot/openmpi"]])
def test_stopped_engine_is_one_line(mpiboot: Mpiboot, tmp_path: Path, argv: list[str]) -> None:
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    assert "no Docker engine answers" in one_line(mpiboot("images", *argv, env=environment))


def test_list_needs_no_engine(mpiboot: Mpiboot, tmp_path: Path) -> None:
    done = mpiboot("images", "list", env={**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert done.returncode == 0
    assert "no engine" in done.stdout
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert names == re.findall(r"^([\w-]+) += \{ runtime", OWN.read_text(), re.MULTILINE)


@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "intel"])
def test_c_program_compiled_in_dev_runs_in_the_runtime_image(image: Tag, run: Run, mpi: str) -> None:
    image(mpi)
    image(f"{mpi}-dev")
    tag = f"mpiboot-test/pi-{mpi}"
    context = str(REPOSITORY / "examples" / "pi")
    argv = [docker_cli(), "build", "--quiet", "--tag", tag, "--build-arg", f"MPI={mpi}", context]
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})
    try:
        code, said = run(tag, "mpirun", "-n", "2", "pi", "1000000")
    finally:
        subprocess.run([docker_cli(), "rmi", "--force", tag], capture_output=True, check=True)
    assert code == 0, said
    assert "rank 1 of 2" in said
    assert "pi is about 3.1415926" in said


def test_own_base_gets_mpi_for_its_own_python_and_keeps_what_it_had(
    image: Tag, docker_engine: docker.DockerClient, mpiboot: Mpiboot, run: Run
) -> None:
    image("openmpi")
    debian = docker_engine.images.get("mpiboot/openmpi").labels["org.opencontainers.image.base.name"]
    base, tag = "mpiboot-test/framework", "mpiboot-test/framework-mpi"
    # As frameworks' images are: a Python of their own comes first, with packages, an environment and an entrypoint.
    recipe = f"""
        FROM {debian}
        RUN apt-get -q update && apt-get -q -y install --no-install-recommends python3
        RUN python3 -m venv --without-pip /opt/own
        RUN echo 'answer = 42' > $(echo /opt/own/lib/python3*/site-packages)/framework.py
        ENV PATH=/opt/own/bin:$PATH FRAMEWORK=1
        ENTRYPOINT ["/bin/false"]
    """
    argv = [docker_cli(), "build", "--quiet", "--tag", base, "-"]
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    subprocess.run(argv, input=recipe, text=True, check=True, capture_output=True, env=environment)
    try:
        done = mpiboot("images", "build", "openmpi", "--base", base, "--tag", tag, timeout=290)
        assert done.returncode == 0, done.stderr
        program = "import framework as f, os; from mpi4py import MPI; print(f.answer, os.environ['FRAMEWORK'])"
        code, said = run(tag, "mpirun", "-n", "2", "python", "-c", program, user="12345:0")
        assert code == 0, said
        assert said.splitlines() == ["42 1", "42 1"]
        assert run(tag, "mpiboot", "--version")[0] == 0
    finally:
        for one in (tag, base):
            subprocess.run([docker_cli(), "rmi", "--force", one], capture_output=True, check=False)


@pytest.fixture
def names(docker_engine: docker.DockerClient) -> Iterator[str]:
    """A repository without images, whose images are gone afterwards."""
    repository = f"mpiboot-test/names-{uuid.uuid4().hex[:8]}"
    yield repository
    for tag in (tag for one in docker_engine.images.list(repository) for tag in one.tags):
        docker_engine.images.remove(tag)


def publish(engine: docker.DockerClient, repository: str, tag: str) -> str:
    """The identity of an image that is new each time, after a build gave it its name."""
    draft, archive = f"{repository}:building", io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(uuid.uuid4().hex))
    engine.api.import_image_from_data(archive.getvalue(), repository=repository, tag="building")
    builder = Builder(engine, load(), Progress(io.StringIO()))
    builder._publish(load().get("kit"), draft, "scratch", CustomBase("scratch", tag))
    engine.images.remove(draft, noprune=True)
    return str(engine.images.get(tag).id)


def test_a_new_image_takes_no_name_away_that_others_gave_the_old_one(
    docker_engine: docker.DockerClient, names: str
) -> None:
    first = publish(docker_engine, names, f"{names}:latest")
    docker_engine.images.get(first).tag(names, "v1")
    second = publish(docker_engine, names, f"{names}:latest")
    third = publish(docker_engine, names, f"{names}:latest")
    assert len({first, second, third}) == 3
    assert docker_engine.images.get(f"{names}:v1").id == first
    with pytest.raises(ImageNotFound):  # it had no name
        docker_engine.images.get(second)


def test_fragment_makes_an_mpi_image_of_a_users_dockerfile(
    image: Tag, docker_engine: docker.DockerClient, mpiboot: Mpiboot, run: Run, tmp_path: Path
) -> None:
    image("kit")
    image("mpich")
    debian = docker_engine.images.get("mpiboot/mpich").labels["org.opencontainers.image.base.name"]
    fragment = mpiboot("images", "fragment", "mpich").stdout
    (tmp_path / "Dockerfile").write_text(f"FROM {debian}\n{fragment}")
    tag = "mpiboot-test/fragment"
    argv = [docker_cli(), "build", "--quiet", "--tag", tag, *certificates(), str(tmp_path)]
    done = subprocess.run(argv, text=True, capture_output=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})
    assert done.returncode == 0, done.stderr
    try:
        assert "MPICH Version" in run(tag, "mpirun", "-n", "1", "mpichversion", user="12345:0")[1]
    finally:
        subprocess.run([docker_cli(), "rmi", "--force", tag], capture_output=True, check=True)


def certificates() -> list[str]:
    from mpiboot.images.build.docker_command import secrets

    return secrets(os.environ)


def test_sbom_names_every_package_once_and_is_the_same_each_time(mpiboot: Mpiboot, image: Tag, run: Run) -> None:
    tag = image("intel")
    text = mpiboot("images", "sbom", tag).stdout
    document = json.loads(text)
    names = {package["name"]: package["versionInfo"] for package in document["packages"]}
    assert {"openssh-server", "libfabric1", "python3-paramiko", "mpi4py", "impi-rt", "mpiboot"} <= names.keys()
    identifiers = [package["SPDXID"] for package in document["packages"]]
    assert len(identifiers) == len(set(identifiers))
    debs = [one for one in identifiers if one.startswith("SPDXRef-deb-")]
    assert len(debs) == len(run(tag, "dpkg-query", "-W", user="0")[1].splitlines())
    contains = [one for one in document["relationships"] if one["relationshipType"] == "CONTAINS"]
    contained = {one["relatedSpdxElement"] for one in contains}
    assert contained == set(identifiers) - {"SPDXRef-image"}
    assert mpiboot("images", "sbom", tag).stdout == text


def test_bake_file_names_a_target_a_row_and_a_context_that_is_there(mpiboot: Mpiboot, tmp_path: Path) -> None:
    context = tmp_path / "context"
    document = json.loads(mpiboot("images", "bake", "--context", str(context)).stdout)
    assert document["target"]["openmpi"]["platforms"] == ["linux/amd64", "linux/arm64"]
    assert document["target"]["intel"]["platforms"] == ["linux/amd64"]
    assert document["target"]["mpich-dev"]["args"]["KIND"] == "dev"
    assert "openmpi-rocm" in document["target"]
    assert "openmpi-rocm" not in document["group"]["default"]["targets"]
    assert (context / "Dockerfile").is_file()
    assert mpiboot("images", "bake", "--context", str(context)).returncode == 0


def test_bake_does_not_write_into_a_folder_with_other_files(mpiboot: Mpiboot, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    assert "is not empty" in one_line(mpiboot("images", "bake", "--context", str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_list_is_there_for_programs(mpiboot: Mpiboot, tmp_path: Path) -> None:
    env = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = mpiboot("images", "list", "-o", "json", env=env)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["version"] == 1
    openmpi = next(image for image in found["images"] if image["name"] == "openmpi")
    assert (openmpi["runtime"], openmpi["accelerator"]) == ("openmpi", "cpu")
    assert (openmpi["built"], openmpi["bytes"]) == ("", None)
    assert set(openmpi) == {"name", "base", "runtime", "version", "accelerator", "kind", "built", "bytes"}
