"""The packages that set-up installs: Debian releases split them in different ways."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import debian
import engine
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Runs the set-up as root on a release that has these packages after `apt-get update`; returns what it installs."""

    def install(*known: str) -> list[str]:
        has = "|".join(known)
        scripts = {
            "apt-get": 'echo "$*" >>asked; case "$*" in *update*) touch updated;; esac',
            "apt-cache": f"[ -e updated ] || exit 100; case $2 in {has}) ;; *) exit 100;; esac",
        }
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(debian, "POLICY", tmp_path / "policy-rc.d")
        assert debian.install(engine.DOCKER)
        return (tmp_path / "asked").read_text().splitlines()[-1].split("--no-install-recommends ")[1].split()

    return install


def test_an_engine_is_installed_with_the_packages_split_off_from_it(release: Callable[..., list[str]]) -> None:
    installed = release("docker.io", "docker-cli", "docker-buildx")
    assert installed == ["docker.io", "containerd", "runc", "iptables", "docker-cli", "docker-buildx"]


def test_packages_that_a_release_lacks_are_not_installed(release: Callable[..., list[str]]) -> None:
    assert release("docker.io") == ["docker.io", "containerd", "runc", "iptables"]
