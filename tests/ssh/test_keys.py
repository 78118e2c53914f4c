"""A job's SSH material, judged by OpenSSH itself."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from mpiboot.job.names import known_hosts
from mpiboot.ssh.keys import KeyType, generate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(("key_type", "name"), [("ed25519", "ssh-ed25519"), ("ecdsa", "ecdsa-sha2-nistp256")])
def test_openssh_reads_both_halves_of_both_pairs(
    tmp_path: Path, program: Callable[[str], str], key_type: KeyType, name: str
) -> None:
    material = generate(key_type)
    pairs = ((material.client_private, material.client_public), (material.host_private, material.host_public))
    for private, public in pairs:
        file = tmp_path / "key"
        file.unlink(missing_ok=True)
        file.write_text(private)
        file.chmod(0o600)
        derived = subprocess.run([program("ssh-keygen"), "-y", "-f", file], capture_output=True, text=True, check=True)
        assert derived.stdout.split()[:2] == public.split()[:2]
        assert public.startswith(f"{name} ")
        assert public.endswith("\n")


def test_nothing_is_ever_the_same_twice() -> None:
    first, second = generate(), generate()
    assert len({first.client_private, first.host_private, second.client_private, second.host_private}) == 4
    assert first.token != second.token


def test_secrets_do_not_show_in_a_log() -> None:
    material = generate()
    assert material.token not in repr(material)
    assert "PRIVATE" not in repr(material)


def test_known_hosts_is_one_line_for_every_host(tmp_path: Path, program: Callable[[str], str]) -> None:
    material = generate()
    text = known_hosts(material.host_public)
    assert text.count("\n") == 1
    (tmp_path / "known_hosts").write_text(text)
    found = subprocess.run(
        [program("ssh-keygen"), "-F", "any.name.at.all", "-f", tmp_path / "known_hosts"], capture_output=True, text=True
    )
    assert found.stdout.split()[-1] == material.host_public.split()[1]
