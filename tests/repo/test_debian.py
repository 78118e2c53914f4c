"""Which packages set-up asks a Debian for: releases differ in how they cut them."""

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
    """What root's apt-get is asked to install, on a release that has these packages after its first update."""

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


def test_an_engine_is_installed_with_what_a_release_has_split_off_from_it(release: Callable[..., list[str]]) -> None:
    asked = release("docker.io", "docker-cli", "docker-buildx")
    assert asked == ["docker.io", "containerd", "runc", "iptables", "docker-cli", "docker-buildx"]


def test_a_release_is_not_asked_for_packages_that_it_does_not_have(release: Callable[..., list[str]]) -> None:
    assert release("docker.io") == ["docker.io", "containerd", "runc", "iptables"]
