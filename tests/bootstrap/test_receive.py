"""The caller's directory: it comes to the launcher as an archive, and is on every host before the command starts."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.workdir import archive
from mpiboot.bootstrap.workdir.archive import ArchiveError
from tests.bootstrap.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.bootstrap.conftest import Job
    from tests.bootstrap.processes import Process

# Launcher and workers share this machine's files: a worker's own directory has its number at the end.
WORKER = """#!/bin/sh
{limit}
command="$1 $2 $3-$MPIBOOT_INDEX"
shift 3
exec {python} -m mpiboot $command "$@"
"""


def packed(members: Mapping[str, tarfile.TarInfo | bytes]) -> bytes:
    """An archive; members that are bytes are files."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        for name, member in members.items():
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(name)
            content = b"" if isinstance(member, tarfile.TarInfo) else member
            info.size, info.mode = len(content), info.mode if isinstance(member, tarfile.TarInfo) else 0o755
            made.addfile(info, io.BytesIO(content))
    return file.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


class Receiving:
    """A launch that waits for a directory, and what sends it."""

    def __init__(self, job: Job, tmp_path: Path) -> None:
        self.job, self.here, self.run_dir = job, tmp_path / "work", tmp_path / "run"
        self.here.mkdir()
        for index in range(2):
            self.worker_directory(index).mkdir()

    def worker_directory(self, index: int) -> Path:
        return Path(f"{self.here}-{index}")

    def start_workers(self, limit: str = "") -> None:
        program = self.here.parent / "bin" / "mpiboot"
        program.parent.mkdir()
        program.write_text(WORKER.format(limit=limit, python=sys.executable))
        program.chmod(0o755)
        for index in range(2):
            path = f"{program.parent}:{os.environ['PATH']}"
            self.job.start(index, env={"PATH": path, "MPIBOOT_INDEX": str(index)})

    def launch(self, *words: str, timeout: float = 60, give: str = "") -> Process:
        options = ("--receive", self.here, "--receive-timeout", timeout, "--give", give)
        return self.job.launch(*words, options=options, env={"MPIBOOT_RUN_DIR": str(self.run_dir)})

    def store(self, data: bytes) -> subprocess.CompletedProcess[bytes]:
        return self.workdir("store", data)

    def workdir(self, action: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "mpiboot", "workdir", action]
        env = {**os.environ, "MPIBOOT_RUN_DIR": str(self.run_dir)}
        return subprocess.run(command, input=data, env=env, capture_output=True, check=False, timeout=60)


@pytest.fixture
def receiving(job: Job, tmp_path: Path) -> Receiving:
    return Receiving(job, tmp_path)


def test_the_directory_is_on_every_host_before_the_command(receiving: Receiving) -> None:
    receiving.start_workers()
    show = " && ".join(f"cat {each}/hello.txt" for each in (receiving.here, *map(receiving.worker_directory, (0, 1))))
    launch = receiving.launch("sh", "-c", f"{show} && {receiving.here}/run")
    launch.says("workers ready")
    script = f"#!/bin/sh\nreadlink {receiving.here}/also\n".encode()
    root = tarfile.TarInfo("./")
    root.type = tarfile.DIRTYPE
    sent = packed({".": root, "hello.txt": b"hello\n", "run": script, "also": link("also", "hello.txt")})
    assert receiving.store(sent).returncode == 0
    assert launch.ends() == 0, launch.stderr
    assert launch.stdout == "hello\n" * 3 + "hello.txt\n"
    assert list(receiving.run_dir.glob("workdir*")) == []


def test_a_sender_that_dies_leaves_nothing_and_another_one_can_send(receiving: Receiving) -> None:
    receiving.start_workers()
    launch = receiving.launch("cat", f"{receiving.here}/hello.txt")
    whole = packed({"hello.txt": b"hello\n"})
    died = receiving.store(whole[:-5])
    assert (died.returncode, died.stderr) == (74, b"the connection ended before the whole directory had come\n")
    launch.says("waiting for the working directory")
    assert receiving.store(whole).returncode == 0
    assert launch.ends() == 0, launch.stderr


def test_a_directory_that_never_comes_ends_the_launch(receiving: Receiving) -> None:
    receiving.start_workers()
    launch = receiving.launch("true", timeout=0.5)
    assert launch.ends() == 124
    assert f"the working directory for {receiving.here} did not come: no byte of it for 0.5 s" in launch.stderr


def test_a_signal_ends_the_wait(receiving: Receiving) -> None:
    receiving.start_workers()
    launch = receiving.launch("true")
    launch.says("waiting for the working directory")
    launch.popen.terminate()
    assert launch.ends() == 143


def test_a_worker_that_cannot_write_it_is_named_and_nothing_starts(receiving: Receiving, tmp_path: Path) -> None:
    receiving.start_workers("[ $MPIBOOT_INDEX = 0 ] || ulimit -f 100")  # blocks of 512 bytes
    launch = receiving.launch("touch", str(tmp_path / "started"))
    assert receiving.store(packed({"large": os.urandom(200_000)})).returncode == 0
    assert launch.ends() == 74
    assert f"{receiving.job.name(1)}: cannot write the contents of large: File too large" in launch.stderr
    assert receiving.job.name(0) not in launch.stderr.splitlines()[-1]
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("member", [
    tarfile.TarInfo("../out"), tarfile.TarInfo("/tmp/out"), tarfile.TarInfo("a/../../out"), link("out", "/etc"),
    link("out", "../.."), tarfile.TarInfo(".."),
], ids=lambda member: f"{member.name}>{member.linkname}")  # fmt: skip
def test_nothing_leaves_the_directory(tmp_path: Path, member: tarfile.TarInfo) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ArchiveError, match="leaves its directory"):
        archive.unpack(io.BytesIO(packed({"": member})), str(tmp_path / "in"))
    assert not (tmp_path / "out").exists()


def test_a_link_that_was_there_already_is_not_followed_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "in" / "name").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "away").symlink_to(tmp_path)
    archive.unpack(io.BytesIO(packed({"name": b"theirs"})), str(tmp_path / "in"))
    assert (tmp_path / "secret").read_text() == "mine"
    with pytest.raises(ArchiveError, match="leaves its directory"):
        archive.unpack(io.BytesIO(packed({"away/secret": b"theirs"})), str(tmp_path / "in"))


def test_a_damaged_archive_is_refused(receiving: Receiving) -> None:
    whole = bytearray(packed({"name": os.urandom(5000)}))
    whole[2000] ^= 255
    done = receiving.store(bytes(whole))
    assert done.returncode == 74
    assert done.stderr.startswith(b"the directory came damaged")
    eventually(lambda: not list(receiving.run_dir.glob("workdir*")))


def unpacked(data: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        files = ((each.name, archive.extractfile(each)) for each in archive)
        return {name: file.read().decode() for name, file in files if file}


def test_results_are_collected_from_all_hosts_and_the_first_worker_counts(receiving: Receiving) -> None:
    receiving.start_workers()
    here = receiving.here
    script = (
        f"echo 0 > {here}-0/a.txt; echo 1 > {here}-1/a.txt; mkdir {here}-1/deep; echo 1 > {here}-1/deep/b.txt;"
        f"echo launcher > {here}/c.txt; echo launcher > {here}/a.txt; ln -s /etc/passwd {here}/d.txt; exit 3"
    )
    launch = receiving.launch("sh", "-c", script, give="*.txt")
    assert receiving.store(packed({})).returncode == 0
    wanted = {"a.txt": "0\n", "deep/b.txt": "1\n", "c.txt": "launcher\n"}
    assert unpacked(receiving.workdir("give", b"").stdout) == wanted
    assert launch.popen.poll() is None  # this one did not say that it has them
    assert unpacked(receiving.workdir("give", b"!").stdout)["a.txt"] == "0\n"
    assert launch.ends() == 3, launch.stderr


def test_results_that_nothing_fetches_do_not_hold_the_launcher(receiving: Receiving) -> None:
    receiving.start_workers()
    launch = receiving.launch("true", give="*", timeout=1)
    assert receiving.store(packed({})).returncode == 0
    assert launch.ends() == 0
    assert "the results were not fetched: nothing asked for them for 1 s" in launch.stderr
