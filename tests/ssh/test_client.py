"""The client's configuration, as the real ssh understands it (`ssh -G`), alone and behind the shim."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap.run.access import SHIM
from mpiboot.ssh.client import KEX, Client, Peer, configuration, parse_effective, tells_hosts_apart

if TYPE_CHECKING:
    from collections.abc import Callable

PEERS = (Peer(("pi-worker-0.pi.ns.svc", "pi-worker-0"), "10.9.8.7"), Peer(("w1",), "10.9.8.6", 2200, "alice"))


@dataclass(frozen=True)
class Launcher:
    """The files of a launch, as `mpiboot launch` leaves them, and an image's own ssh_config."""

    directory: Path
    image: Path

    def write(self, *peers: Peer, verify: bool = True, keep_alive: bool = False) -> None:
        known = str(self.directory / "known_hosts") if verify else "/dev/null"
        identity = str(self.directory / "id")
        client = Client(identity, known, verify, "", "launch-1", (str(self.image),), keep_alive)
        (self.directory / "ssh_config").write_text(configuration(client, peers))
        (self.directory / "known_hosts").write_text("")
        (self.directory / "hosts").mkdir(exist_ok=True)
        for peer in peers:
            for name in (*peer.names, peer.address):
                (self.directory / "hosts" / name).touch()
        if not verify:
            (self.directory / "hosts-not-verified").touch()

    @property
    def contacted(self) -> list[str]:
        file = self.directory / "contacted"
        return file.read_text().split() if file.exists() else []

    def ssh(self, *words: str) -> dict[str, str]:
        """What `ssh -F FILE WORDS` would do."""
        return self._effective(["ssh", "-F", str(self.directory / "ssh_config"), "-G", *words])

    def shim(self, *words: str, env: dict[str, str] | None = None) -> dict[str, str]:
        """What the shim's ssh would do."""
        given = {"PATH": os.environ["PATH"], "MPIBOOT_SSH_CONFIG": str(self.directory / "ssh_config")}
        return self._effective([SHIM, "-G", *words], {**given, **(env or {})})

    @staticmethod
    def _effective(command: list[str], env: dict[str, str] | None = None) -> dict[str, str]:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        assert done.returncode == 0, done.stderr
        return dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)


@pytest.fixture
def launcher(tmp_path: Path, program: Callable[[str], str]) -> Launcher:
    program("ssh")
    made = Launcher(tmp_path / "run with a blank", tmp_path / "image_ssh_config")
    made.directory.mkdir()
    made.image.write_text("")
    made.write(*PEERS)
    return made


def test_a_name_stands_for_its_address_and_the_jobs_key(launcher: Launcher) -> None:
    for name in ("pi-worker-0.pi.ns.svc", "pi-worker-0", "10.9.8.7"):
        told = launcher.ssh(name)
        assert told["hostname"] == "10.9.8.7"
        assert told["hostkeyalias"] == "pi-worker-0.pi.ns.svc"
        assert told["port"] == "2222"
        assert told["identityfile"] == str(launcher.directory / "id")
        assert told["userknownhostsfile"] == str(launcher.directory / "known_hosts")
        assert told["stricthostkeychecking"] == "true"
        assert told["batchmode"] == "yes"
        assert told["forwardagent"] == "no"


def test_what_is_known_of_a_worker_beats_the_images_files(launcher: Launcher) -> None:
    launcher.image.write_text("Host *\n  Port 2022\n  User bob\n  StrictHostKeyChecking no\n  ForwardAgent yes\n")
    assert launcher.ssh("w1")["port"] == "2200"
    assert launcher.ssh("w1")["user"] == "alice"
    assert launcher.ssh("w1")["stricthostkeychecking"] == "true"
    assert launcher.ssh("w1")["forwardagent"] == "no"


def test_port_and_user_are_the_images_where_no_other_source_has_them(launcher: Launcher) -> None:
    launcher.image.write_text("Port 2022\nUser bob\n")
    told = launcher.ssh("pi-worker-0")
    assert (told["port"], told["user"]) == ("2022", "bob")


def test_other_hosts_are_left_to_the_images_files(launcher: Launcher) -> None:
    launcher.image.write_text("StrictHostKeyChecking no\n")
    told = launcher.ssh("example.org")
    assert told["port"] == "22"
    assert told["stricthostkeychecking"] == "false"
    assert told["identityfile"] != str(launcher.directory / "id")


def test_the_cheapest_key_exchange_comes_first(launcher: Launcher) -> None:
    assert launcher.ssh("w1")["kexalgorithms"] == KEX
    assert KEX.startswith("ecdh-sha2-nistp256,curve25519-sha256,")


def test_elastic_jobs_notice_a_cut_network(launcher: Launcher) -> None:
    assert launcher.ssh("w1")["serveraliveinterval"] != "3"
    launcher.write(*PEERS, keep_alive=True)
    told = launcher.ssh("w1")
    assert (told["serveraliveinterval"], told["serveralivecountmax"]) == ("3", "2")


def test_a_thousand_workers_fit(launcher: Launcher) -> None:
    launcher.write(*(Peer((f"w-{i}.job.ns.svc", f"w-{i}"), f"10.1.{i // 250}.{i % 250 + 1}") for i in range(1000)))
    told = launcher.ssh("w-999.job.ns.svc")
    assert (told["hostname"], told["port"]) == ("10.1.3.250", "2222")
    assert told["stricthostkeychecking"] == "true"


def test_the_shim_beats_what_mpirun_and_horovodrun_pass(launcher: Launcher) -> None:
    insisting = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
    told = launcher.shim("-x", *insisting, "-p", "2200", "w1")
    assert told["stricthostkeychecking"] == "true"
    assert told["userknownhostsfile"] == str(launcher.directory / "known_hosts")
    assert told["hostname"] == "10.9.8.6"


@pytest.mark.parametrize(
    "given", [("-p", "22"), ("-p22",), ("-o", "Port=22"), ("-oPort=22",), ("-o", "port 22"), ("-xp22",)]
)
def test_the_port_that_the_launch_knows_beats_one_that_a_program_passes(
    launcher: Launcher, given: tuple[str, ...]
) -> None:
    assert launcher.shim(*given, "w1")["port"] == "2200"  # as the worker's address came with it
    assert launcher.shim(*given, "pi-worker-0")["port"] == "2222"  # by the configuration's last lines
    launcher.image.write_text("Port 2022\n")
    assert launcher.shim(*given, "pi-worker-0")["port"] == "2022"  # as the image says
    assert launcher.shim(*given, "example.org")["port"] == "22"  # not a worker


def test_the_known_port_also_beats_one_behind_the_host(launcher: Launcher) -> None:
    assert launcher.shim("-x", "w1", "-p", "22")["port"] == "2200"
    launcher.shim("w1", "-x", "mkdir", "-p", "x")  # the command's own option
    assert launcher.contacted == ["w1", "w1"]


def test_without_a_launch_the_shim_takes_the_key_that_it_can_read(launcher: Launcher, tmp_path: Path) -> None:
    keys = tmp_path / "mounted"
    (keys / "any-user").mkdir(parents=True)
    (keys / "any-user" / "id_rsa").touch()
    alone = {"MPIBOOT_SSH_CONFIG": "/nonexistent", "MPIBOOT_SSH_DIR": str(keys)}
    assert launcher.shim("w1", env=alone)["identityfile"] == str(keys / "any-user" / "id_rsa")
    (keys / "id_rsa").touch()
    assert not launcher.shim("w1", env=alone)["identityfile"].startswith(str(tmp_path))


def test_the_shim_notes_the_hosts_that_it_contacted(launcher: Launcher) -> None:
    launcher.shim("-x", "-o", "ConnectionAttempts=10", "w1")
    launcher.shim("-l", "bob", "pi-worker-0")
    launcher.shim("bob@10.9.8.7")
    launcher.shim("example.org")
    assert launcher.contacted == ["w1", "pi-worker-0", "10.9.8.7"]


def test_the_shim_is_plain_ssh_for_other_hosts(launcher: Launcher) -> None:
    told = launcher.shim("-o", "StrictHostKeyChecking=no", "example.org")
    assert told["stricthostkeychecking"] == "false"
    assert told["hostname"] == "example.org"


def test_the_shim_is_plain_ssh_without_a_launch(launcher: Launcher) -> None:
    told = launcher.shim("-o", "StrictHostKeyChecking=no", "w1", env={"MPIBOOT_SSH_CONFIG": "/does/not/exist"})
    assert told["hostname"] == "w1"
    assert told["stricthostkeychecking"] == "false"


def test_the_shim_lets_hosts_be_unverified_where_that_was_asked_for(launcher: Launcher) -> None:
    launcher.write(*PEERS, verify=False)
    told = launcher.shim("w1")
    assert told["stricthostkeychecking"] == "false"


def test_the_shim_does_not_call_itself_or_another_copy(tmp_path: Path, program: Callable[[str], str]) -> None:
    program("ssh")
    for directory in (tmp_path / "first", tmp_path / "mpiboot-launch-7" / "bin"):
        directory.mkdir(parents=True)
        shutil.copy(SHIM, directory / "ssh")
    path = f"{tmp_path}/first:{tmp_path}/mpiboot-launch-7/bin:{os.environ['PATH']}"
    done = subprocess.run(
        [tmp_path / "first" / "ssh", "-V"], capture_output=True, text=True, timeout=60, env={"PATH": path}
    )
    assert done.stderr.startswith("OpenSSH")


def test_the_shim_says_so_where_there_is_no_ssh(tmp_path: Path) -> None:
    nowhere = {"PATH": str(tmp_path)}
    done = subprocess.run(["/bin/sh", SHIM, "w1"], capture_output=True, text=True, timeout=60, env=nowhere)
    assert done.returncode == 127
    assert "ssh is not installed here" in done.stderr


def test_a_shell_beside_the_launcher_finds_its_configuration(launcher: Launcher) -> None:
    """The name in /tmp counts only if it is the caller's own directory."""
    place = Path(f"/tmp/mpiboot-{os.geteuid()}")
    if place.exists() or place.is_symlink():
        pytest.skip(f"{place} is in use on this machine")
    plain = {"MPIBOOT_SSH_CONFIG": ""}
    try:
        place.symlink_to(launcher.directory)
        assert launcher.shim("w1", env=plain)["hostname"] == "w1"
        place.unlink()
        shutil.copytree(launcher.directory, place)
        assert launcher.shim("w1", env=plain)["hostname"] == "10.9.8.6"
        if os.geteuid() == 0:
            os.chown(place, 5, -1)
            assert launcher.shim("w1", env=plain)["hostname"] == "w1"
    finally:
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("", False),
        ("Port 2222\n# Host a\n", False),
        ("Host *\n Port 2222\n", False),
        ("Match all\n", False),
        ("Host=*\n", False),
        ("Host *.cluster\n Port 1\n", True),
        ("host a b\n", True),
        ("Match user root\n", True),
    ],
)
def test_files_that_tell_hosts_apart_are_recognized(text: str, apart: bool) -> None:
    assert tells_hosts_apart(text) is apart


def test_what_ssh_tells_is_understood() -> None:
    assert parse_effective("user bob\nhostname w1\nport 2022\ntrue\n") == (2022, "bob")
    assert parse_effective("") == (2222, "")
