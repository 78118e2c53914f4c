"""What an image can do to the machine that checks it: little, and nothing to the terminal."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.images.check import READER
from mpiboot.images.check.host import LONGEST_OUTPUT, Backend
from mpiboot.images.check.sandbox import MEMORY, ContainerSpec, Sandbox, limits
from mpiboot.images.check.subject import read_file
from mpiboot.job.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker
    from docker.models.containers import Container


def test_hostile_image_gets_a_short_report_without_escape_sequences(
    foreign: Callable[[str], str], tmp_path: Path
) -> None:
    # wait4 would report the memory of this process too, which the new one shares until it calls exec.
    measured = (
        "import sys, re; from mpiboot.cli.main import main; code = main(sys.argv[2:]);"
        "open(sys.argv[1], 'w').write(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]);"
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", measured, str(tmp_path / "used"), "images", "check", foreign("hostile")]
    with (tmp_path / "out").open("w") as out, (tmp_path / "error").open("w") as error:
        process = subprocess.run(command, stdout=out, stderr=error)
    report = (tmp_path / "out").read_text()
    assert (process.returncode, (tmp_path / "error").read_text()) == (1, "")
    assert "\\x1b]0;owned\\x07" in report
    assert [character for character in report if not character.isprintable() and character != "\n"] == []
    assert max(map(len, report.splitlines())) < 2000
    # In kB. An honest image takes 60 MB. This one prints hundreds of megabytes a second as long as they are read.
    assert int((tmp_path / "used").read_text()) < 200_000


@pytest.fixture
def sleeping(docker_engine: docker.DockerClient, image: Callable[[str], str]) -> Iterator[Container]:
    """A container of ours, as the static points see one."""
    sandbox = Sandbox(docker_engine)
    try:
        sandbox.open()
        spec = ContainerSpec("test", image("openmpi"), entrypoint=["sleep", "60"], user="0", options=READER)
        container = sandbox.create(spec)
        sandbox.start(container)
        yield container
    finally:
        sandbox.close()


def test_container_for_the_static_points_has_few_rights_and_limits(sleeping: Container) -> None:
    sleeping.reload()
    host = sleeping.attrs["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert host["Memory"] == host["MemorySwap"] == 2 * 1024**3
    assert host["PidsLimit"] == 4096
    assert host["NanoCpus"] > 0
    # DAC_OVERRIDE is bit 1, NET_BIND_SERVICE bit 10.
    status = Backend(str(sleeping.name)).run("grep CapEff /proc/self/status").stdout
    assert int(status.split()[1], 16) == 1 << 1 | 1 << 10


def test_limits_are_those_that_the_engine_has() -> None:
    everything = {"MemoryLimit": True, "SwapLimit": True, "PidsLimit": True, "CpuCfsQuota": True, "NCPU": 1}
    named: dict[str, Any] = limits(everything)
    assert (named["mem_limit"], named["memswap_limit"], named["nano_cpus"]) == (MEMORY, MEMORY, 10**9)
    assert set(limits({"MemoryLimit": True})) == {"log_config", "mem_limit"}
    assert set(limits({})) == {"log_config"}


def test_command_that_floods_is_cut_off_and_has_failed(sleeping: Container) -> None:
    flood = Backend(str(sleeping.name)).run("yes")
    assert (flood.rc, len(flood.stdout)) == (1, LONGEST_OUTPUT)
    assert "printed more than 1 MB" in flood.stderr


def test_bytes_that_are_no_text_are_read_all_the_same(sleeping: Container) -> None:
    assert Backend(str(sleeping.name)).run("printf 'a\\377b'").stdout == "a\N{REPLACEMENT CHARACTER}b"


def test_link_to_a_file_is_followed_and_a_directory_is_no_file(sleeping: Container) -> None:
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, target in (("one", "two"), ("two", "/etc/hostname")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    sleeping.put_archive("/tmp", archive.getvalue())
    assert read_file(sleeping, "/tmp/one") == read_file(sleeping, "/etc/hostname") != ""
    assert [read_file(sleeping, path) for path in ("/etc", "/etc/none")] == ["", ""]


def test_control_characters_are_written_out() -> None:
    assert printable("a\x1b[2J\r\x07b\tc\nd\u202e") == "a\\x1b[2J\\r\\x07b\tc\nd\\u202e"
    assert printable("größer, 大きい") == "größer, 大きい"
