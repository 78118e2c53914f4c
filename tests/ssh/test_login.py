"""Logins that fail in every way, against a real sshd; and which host keys a known_hosts accepts."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from mpiboot.ssh.failure import Failure, Kind
from mpiboot.ssh.keys import generate
from mpiboot.ssh.login import Account, accepted_keys, log_in
from mpiboot.ssh.server import Server, configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WITHIN = 30.0


@dataclass(frozen=True)
class Sshd:
    """A real one, on a free port, and the account that may log in."""

    port: int
    account: Account


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, program: Callable[[str], str]) -> Iterator[Sshd]:
    directory, material = tmp_path_factory.mktemp("sshd"), generate()
    texts = {"host": material.host_private, "id": material.client_private, "keys": material.client_public}
    for name, text in texts.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    server = Server(port, str(directory / "host"), str(directory / "keys"), {}, listen="127.0.0.1")
    (directory / "config").write_text(configuration(server))
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # noqa: PTH103
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([program("sshd"), "-D", "-e", "-f", directory / "config"], stderr=log)
    deadline = time.monotonic() + WITHIN
    while "Server listening" not in (directory / "log").read_text():
        assert process.poll() is None, (directory / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield Sshd(port, Account(getpass.getuser(), str(directory / "id"), f"* {material.host_public}"))
    process.terminate()
    process.wait(WITHIN)


def kind(failure: Failure | None) -> Kind | None:
    return failure.kind if failure else None


def test_the_right_key_on_the_right_host_gets_in(sshd: Sshd) -> None:
    assert log_in("w1", "127.0.0.1", sshd.port, sshd.account, WITHIN) is None


def test_any_host_will_do_without_a_known_hosts(sshd: Sshd) -> None:
    assert log_in("w1", "127.0.0.1", sshd.port, sshd.account._replace(known_hosts=""), WITHIN) is None


def test_another_host_key_is_reported(sshd: Sshd) -> None:
    account = sshd.account._replace(known_hosts=f"* {generate().host_public}")
    failure = log_in("w1", "127.0.0.1", sshd.port, account, WITHIN)
    assert kind(failure) is Kind.HOST_KEY
    assert "shows ssh-ed25519 SHA256:" in str(failure)


def test_a_host_key_of_another_type_is_reported(sshd: Sshd) -> None:
    account = sshd.account._replace(known_hosts=f"* {generate('ecdsa').host_public}")
    assert kind(log_in("w1", "127.0.0.1", sshd.port, account, WITHIN)) is Kind.HOST_KEY


def test_another_client_key_is_reported(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "id").write_text(generate().client_private)
    account = sshd.account._replace(identity=str(tmp_path / "id"))
    assert kind(log_in("w1", "127.0.0.1", sshd.port, account, WITHIN)) is Kind.AUTHENTICATION


def test_a_user_who_does_not_exist_is_reported(sshd: Sshd) -> None:
    failure = log_in("w1", "127.0.0.1", sshd.port, sshd.account._replace(user="nobody-here"), WITHIN)
    assert kind(failure) is Kind.AUTHENTICATION
    assert "nobody-here cannot log in" in str(failure)


def test_a_port_without_a_server_is_reported(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    assert kind(log_in("w1", "127.0.0.1", port, sshd.account, WITHIN)) is Kind.REFUSED


def test_a_server_of_something_else_is_reported(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        failure = log_in("w1", "127.0.0.1", listener.getsockname()[1], sshd.account, 5)
    assert kind(failure) is Kind.NOT_SSH


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        ("* ssh-ed25519 KEY", True),
        ("w1,w2 ssh-ed25519 KEY comment", True),
        ("pi-worker-* ssh-ed25519 KEY", False),
        ("w* ssh-ed25519 KEY", True),
        ("# * ssh-ed25519 KEY", False),
        ("@revoked * ssh-ed25519 KEY", False),
        ("* ssh-ed25519", False),
        ("", False),
    ],
)
def test_known_hosts_lines(line: str, accepted: bool) -> None:
    assert accepted_keys("w1", line) == ((("ssh-ed25519", "KEY"),) if accepted else ())
