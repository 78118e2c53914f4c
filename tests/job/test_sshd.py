"""Looking at workers in other makers' images: which port, and whether something listens."""

from __future__ import annotations

import shlex
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.job.plan import sshd
from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    assert unknown["exec"]["command"] == ["/bin/sh", "-c", sshd.LISTENS, "sshd"]
    assert unknown["failureThreshold"] == 2147483647


CONFIGS: dict[str, tuple[list[str], list[str]]] = {
    "none": (["/usr/sbin/sshd", "-De"], []),
    "an option": (["/usr/sbin/sshd", "-De", "-f", "/home/u/sshd_config"], ["-f", "/home/u/sshd_config"]),
    "without blank": (["/usr/sbin/sshd", "-f/home/u/config"], ["-f", "/home/u/config"]),
    "with other letters": (["sh", "-c", "exec /usr/sbin/sshd -Def '/x'"], ["-f", "/x"]),
    "another option's value": (["/usr/sbin/sshd", "-D", "-o", "PidFile=/f"], []),
    "another program's": (["tail", "-f", "/var/log/x"], []),
}


@pytest.mark.parametrize(("command", "arguments"), CONFIGS.values(), ids=CONFIGS)
def test_the_probe_asks_the_configuration_that_the_command_names(command: list[str], arguments: list[str]) -> None:
    assert sshd.probe({"command": command})["exec"]["command"][3:] == ["sshd", *arguments]


SHELLS = ("dash", "bash")
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"


@dataclass
class Container:
    """What the probe sees of one: processes, sockets and an sshd that knows its ports, all of them made up."""

    root: Path

    def process(self, pid: int, name: str, *argv: str) -> None:
        (self.root / "proc" / str(pid)).mkdir(parents=True)
        (self.root / "proc" / str(pid) / "comm").write_text(f"{name}\n")
        (self.root / "proc" / str(pid) / "cmdline").write_text("\0".join([*argv, ""]))

    def socket(self, port: int, state: str = "0A") -> None:
        table = self.root / "proc" / "net" / "tcp6"
        table.parent.mkdir(parents=True, exist_ok=True)
        lines = table.read_text() if table.exists() else f"{HEAD}\n"
        table.write_text(f"{lines}   0: {'0' * 32}:{port:04X} {'0' * 32}:0000 {state} 00000000:00000000\n")

    def program(self, *ports: int) -> None:
        """An sshd to ask: it tells its ports, if it is given a configuration."""
        (self.root / "bin").mkdir()
        lines = "\n".join(f"port {port}" for port in ports)
        asked = f'[ "$*" = "-T -f /config" ] || exit 1\ncat <<END\n{lines}\naddressfamily any\nEND\n'
        (self.root / "bin" / "sshd").write_text(f"#!/bin/sh\n{asked}")
        (self.root / "bin" / "sshd").chmod(0o755)

    def ready(self, shell: str, config: str = "/config") -> bool:
        script = sshd.LISTENS.replace("/proc/", f"{self.root}/proc/").replace("/usr/sbin", "/nowhere")
        path = f"{self.root}/bin:/usr/bin:/bin"
        argv = [shell, "-c", script, "sshd", *(["-f", config] if config else [])]
        done = subprocess.run(argv, capture_output=True, text=True, env={"PATH": path, "runs": "x", "ports": "x"})
        assert (done.stdout, done.stderr) == ("", "")
        return done.returncode == 0


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, program: Callable[[str], str]) -> str:
    return program(request.param)


@pytest.fixture
def made_up(tmp_path: Path) -> Container:
    (tmp_path / "proc").mkdir()
    return Container(tmp_path)


@pytest.mark.parametrize(("title", "listens"), [
    ("sshd: /usr/sbin/sshd -De [listener] 0 of 10-100 startups", True),
    ("sshd: user@pts/0", False),
])  # fmt: skip
def test_an_sshd_that_says_it_listens_is_believed(made_up: Container, shell: str, title: str, *, listens: bool) -> None:
    made_up.program(22)
    made_up.process(1, "sleep", "sleep", "[listener]")
    made_up.process(7, "sshd", title)
    assert made_up.ready(shell) == listens


def test_sockets_of_others_do_not_count(made_up: Container, shell: str) -> None:
    made_up.program(2222)
    made_up.process(1, "sh", "/bin/sh", "-c", "sleep 9; exec /usr/sbin/sshd -De")
    made_up.socket(8080)
    made_up.socket(2222)  # of the node, say: there is no sshd in here yet
    assert not made_up.ready(shell)


@pytest.mark.parametrize(("port", "state", "listens"), [(2022, "0A", True), (2022, "01", False), (8080, "0A", False)])
def test_an_old_sshd_is_looked_for_at_its_own_ports(
    made_up: Container, shell: str, port: int, state: str, *, listens: bool
) -> None:
    made_up.program(22, 2022)
    made_up.process(7, "sshd", "/usr/sbin/sshd", "-D", "-f", "/config")
    made_up.socket(port, state)
    assert made_up.ready(shell) == listens


def test_where_the_port_is_not_known_any_socket_counts(made_up: Container, shell: str) -> None:
    made_up.process(7, "dropbear", "dropbear", "-F")
    assert not made_up.ready(shell)
    made_up.socket(8080)
    assert made_up.ready(shell)
    made_up.program(22)
    assert not made_up.ready(shell)
    made_up.process(8, "sshd", "/usr/sbin/sshd", "-D")
    assert made_up.ready(shell, config="/not/the/one")


def test_the_probe_accepts_a_real_sshd_alone(program: Callable[[str], str], shell: str, tmp_path: Path) -> None:
    alone = [program("unshare"), "--pid", "--fork", "--mount-proc", "--kill-child", shell, "-c"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        missing("the right to make a process namespace", "run as root")
    key = tmp_path / "key"
    subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket() as free:
        assert other.getsockname()
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        probe = shlex.join([shell, "-c", sshd.LISTENS, "sshd"])
        serve = shlex.join([program("sshd"), "-D", "-f", "/dev/null", "-h", str(key), "-p", str(port),
                            "-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none"])  # fmt: skip
        script = f"{probe} && exit 3; {serve} & until {probe}; do sleep 0.05; done; exit 0"
        assert subprocess.run([*alone, script], timeout=60).returncode == 0


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


def test_a_user_that_cannot_read_roots_key_serves_with_the_other_copy(
    host_keys: Callable[[str], list[str]], tmp_path: Path
) -> None:
    others = tmp_path / "any-user" / "id_rsa"
    others.parent.mkdir()
    (tmp_path / "id_rsa").rename(others)
    assert host_keys("") == [str(others)]
    assert host_keys(f"HostKey {tmp_path}/id_rsa\nHostKey {others}\n")[0] == str(others)
