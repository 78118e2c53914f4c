"""The worker's configuration, as the real sshd understands it (`sshd -T`)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from mpiboot.ssh.keys import generate
from mpiboot.ssh.server import SETTINGS, Server, configuration, set_env
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@pytest.fixture
def effective(tmp_path: Path, program: Callable[[str], str]) -> Callable[[Server], dict[str, str]]:
    """What sshd makes of a configuration."""

    def ask(server: Server) -> dict[str, str]:
        key = tmp_path / "key"
        key.write_text(generate().host_private)
        key.chmod(0o600)
        file = tmp_path / "sshd_config"
        file.write_text(configuration(server._replace(host_key=str(key))))
        done = subprocess.run([program("sshd"), "-T", "-f", file], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)

    return ask


def test_sshd_accepts_it(effective: Callable[[Server], dict[str, str]]) -> None:
    told = effective(Server(2222, "", "/some where/authorized_keys", {"A": "1"}))
    assert told["port"] == "2222"
    assert told["pidfile"] == "none"
    assert told["strictmodes"] == "no"
    assert told["usepam"] == "no"
    assert told["authorizedkeysfile"].strip('"') == "/some where/authorized_keys"


def test_the_address_to_listen_on_is_one_or_all(effective: Callable[[Server], dict[str, str]]) -> None:
    assert effective(Server(2200, "", "/k", {}, listen="127.0.1.7"))["listenaddress"] == "127.0.1.7:2200"
    assert effective(Server(2200, "", "/k", {}))["listenaddress"] in ("0.0.0.0:2200", "[::]:2200")


def test_penalties_are_off_only_where_sshd_knows_them() -> None:
    """A version that does not know the option does not start with it."""
    assert "PerSourcePenalties" not in configuration(Server(2222, "/h", "/k", {}))
    assert "PerSourcePenalties no\n" in configuration(Server(2222, "/h", "/k", {}, knows_penalties=True))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ""),
        ({"A": "1", "B": "two words"}, 'SetEnv "A=1" "B=two words"'),
        ({"A": 'a "b" \\'}, 'SetEnv "A=a \\"b\\" \\\\"'),
        ({"HOME": "/root", "PWD": "/", "HOSTNAME": "x", "USER": "x", "_": "x", "SSH_CLIENT": "x"}, ""),
        ({"MPIBOOT_TOKEN": "s3cret"}, ""),
        ({"TWO_LINES": "1\n2", "BASH_FUNC_f%%": "() {}", "a-b": "1"}, ""),
        ({"K_MPI_JOB_ROLE": "worker"}, 'SetEnv "K_MPI_JOB_ROLE=worker"'),
    ],
)
def test_the_environment_is_one_directive(environment: Mapping[str, str], expected: str) -> None:
    assert set_env(environment) == expected


def options(lines: list[str]) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in lines if " " in line and not line.startswith("#"))


def test_the_configuration_in_images_has_every_setting() -> None:
    file = options((REPOSITORY / "images" / "kit" / "ssh" / "sshd.conf").read_text().splitlines())
    assert {name: file.get(name) for name in options(list(SETTINGS))} == options(list(SETTINGS))


def test_the_delivered_sshd_contradicts_no_setting() -> None:
    script = (REPOSITORY / "images" / "kit" / "delivery" / "serve").read_text()
    file = options(script.partition("<<CONFIG\n")[2].partition("\nCONFIG")[0].splitlines())
    same = file.keys() & options(list(SETTINGS)).keys()
    assert len(same) >= 7
    assert {name: file[name] for name in same} == {name: options(list(SETTINGS))[name] for name in same}
