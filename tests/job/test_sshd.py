"""Looking at workers in other makers' images: which port, and whether something listens."""

from __future__ import annotations

import shlex
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job import sshd

if TYPE_CHECKING:
    from collections.abc import Callable

PORTS: dict[str, tuple[dict[str, Any], int | None]] = {
    "nothing said": ({}, None),
    "an option": ({"command": ["/usr/sbin/sshd", "-De", "-p", "2022"]}, 2022),
    "an option without blank": ({"command": ["/usr/sbin/sshd", "-De", "-p2022"]}, 2022),
    "a configuration option": ({"command": ["/usr/sbin/sshd"], "args": ["-De", "-o", "Port=2022"]}, 2022),
    "within a script": ({"command": ["bash", "-c", "mkdir -p /run/sshd && /usr/sbin/sshd -D -o Port=22 -e"]}, 22),
    "another program's option": ({"command": ["serve", "-p", "8080"]}, None),
    "a declared port": ({"ports": [{"containerPort": 9000}, {"containerPort": 2222}]}, 2222),
    "a declared port by its name": ({"ports": [{"containerPort": 9000, "name": "ssh-in"}]}, 9000),
    "a port of something else": ({"ports": [{"containerPort": 9000, "name": "metrics"}]}, None),
    "odd ports": ({"ports": ["x", {"containerPort": "22"}]}, None),
}


@pytest.mark.parametrize(("container", "port"), PORTS.values(), ids=PORTS)
def test_the_port_of_a_workers_sshd(container: dict[str, Any], port: int | None) -> None:
    assert sshd.known_port(container) == port


def test_probes_never_kill_a_worker() -> None:
    known, unknown = sshd.probe({"ports": [{"containerPort": 22}]}), sshd.probe({})
    assert known == {
        "tcpSocket": {"port": 22}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 2147483647,
    }  # fmt: skip
    assert unknown["exec"]["command"] == ["/bin/sh", "-c", sshd.LISTENS]
    assert unknown["failureThreshold"] == 2147483647


@pytest.mark.parametrize("own", ["startupProbe", "readinessProbe"])
def test_a_probe_of_the_user_is_enough(own: str) -> None:
    assert sshd.has_probe({own: {"tcpSocket": {"port": 1}}})
    assert not sshd.has_probe({"livenessProbe": {"tcpSocket": {"port": 1}}})


def listens(tables: list[Path]) -> bool:
    """The probe's own script on these tables instead of the kernel's."""
    script = sshd.LISTENS.replace("/proc/net/tcp /proc/net/tcp6", shlex.join(map(str, tables)))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode == 0


def test_the_probe_sees_a_socket_that_listens(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = f":{server.getsockname()[1]:04X} "
        lines = Path("/proc/net/tcp").read_text().splitlines()
    ours = [line for line in lines if port in line.split("0A", 1)[0] + " "]
    assert ours
    table.write_text("\n".join([lines[0], *ours, ""]))
    assert listens([tmp_path / "missing", table])
    # The same socket in another state: connected, not listening.
    table.write_text("\n".join([lines[0], *(line.replace(" 0A ", " 01 ") for line in ours), ""]))
    assert not listens([table, tmp_path / "missing"])


@pytest.fixture
def host_keys(program: Callable[[str], str], tmp_path: Path) -> Callable[[str], list[str]]:
    """The host keys that a real sshd uses when our command starts it, its own configuration being the given text."""
    for name in ("id_rsa", "baked"):
        keygen = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(keygen, check=True)

    def ask(configuration: str) -> list[str]:
        (tmp_path / "sshd_config").write_text(configuration)
        with_configuration = f"{program('sshd')} -f {tmp_path}/sshd_config"
        script = sshd.command(str(tmp_path), verify=True)[2]
        # Instead of serving, it tells what it would serve with.
        script = script.replace(sshd.SSHD, with_configuration).replace(" -De ", " -T ")
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        assert "strictmodes no" in lines
        return [line.partition(" ")[2] for line in lines if line.startswith("hostkey ")]

    return ask


def test_the_jobs_host_key_comes_first_and_once(host_keys: Callable[[str], list[str]], tmp_path: Path) -> None:
    ours, baked = str(tmp_path / "id_rsa"), str(tmp_path / "baked")
    assert host_keys("") == [ours]
    assert host_keys(f"HostKey {ours}\n") == [ours]
    assert host_keys(f"HostKey {baked}\n") == [ours, baked]
    assert host_keys(f"HostKey {baked}\nHostKey {ours}\n")[:2] == [ours, baked]


def test_who_cannot_read_roots_key_serves_with_the_one_for_everybody(
    host_keys: Callable[[str], list[str]], tmp_path: Path
) -> None:
    others = tmp_path / "any-user" / "id_rsa"
    others.parent.mkdir()
    (tmp_path / "id_rsa").rename(others)
    assert host_keys("") == [str(others)]
    assert host_keys(f"HostKey {tmp_path}/id_rsa\nHostKey {others}\n")[0] == str(others)
