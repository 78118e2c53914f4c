"""Which directories of this machine a job sees, at which path, and as which user."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from mpiboot.engines import directories
from mpiboot.engines.directories import Mount, place_of
from mpiboot.engines.docker.bind_mounts import User, user_of
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("directory", "place"),
    [
        ("/home/me/hello", "/home/me/hello"),
        ("/home/me", "/home/me"),
        ("/tmp/work", "/tmp/work"),
        ("/var/home/me", "/var/home/me"),
        ("/usrlocal", "/usrlocal"),
        ("/root/hello", "/root/hello"),
        ("/root", "/workdir"),
        ("/home/mpiuser", "/workdir"),
        ("/tmp", "/workdir"),
        ("/opt", "/workdir"),
        ("/", None),
        ("/usr", None),
        ("/usr/local/src/hello", None),
        ("/etc", None),
        ("/proc/1", None),
    ],
)
def test_a_directory_keeps_its_path_unless_the_image_needs_it(directory: str, place: str | None) -> None:
    assert place_of(PurePosixPath(directory)) == place


def test_the_current_directory_and_mounts_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = directories.of_caller(["data:/data", "/a/b:/c:ro"])
    assert found.workdir == Mount(str(tmp_path), str(tmp_path))
    assert found.mounts == (Mount(f"{tmp_path}/data", "/data"), Mount("/a/b", "/c", read_only=True))
    assert found.note == ""
    assert directories.of_caller(workdir=False) == directories.Directories()


@pytest.mark.parametrize(
    ("mounts", "text"),
    [
        (["/data"], "--mount takes SRC:DST or SRC:DST:ro, not '/data'"),
        ([":/data"], "--mount takes SRC:DST"),
        (["/data:/data:rx"], "--mount takes SRC:DST"),
        (["/data:/data:ro:z"], "--mount takes SRC:DST"),
        (["/data:data"], "data must be an absolute path below /"),
        (["/data:/"], "/ must be an absolute path below /"),
        (["/data:/a/../.."], "must be an absolute path below /"),
        (["/a:/data", "/b:/data/"], "two directories have the path /data"),
    ],
)
def test_a_wrong_mount_is_one_line(mounts: list[str], text: str) -> None:
    with pytest.raises(UserError, match=text):
        directories.of_caller(mounts, workdir=False)


def test_a_current_directory_that_is_gone_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UserError, match="the current directory is gone"):
        directories.of_caller()


def test_a_container_s_user_owns_what_the_caller_owns() -> None:
    assert user_of(["name=seccomp,profile=builtin"], 0, 0, [0, 5]) == User(0, 0)
    assert user_of([], 1234, 100, [100, 999]) == User(1234, 100, (0, 999))
    # The root of a rootless engine is the user who started it.
    assert user_of(["name=seccomp,profile=builtin", "name=rootless"], 1234, 100, [100]) == User(0, 0)
