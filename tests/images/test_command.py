"""What a build is given of this machine: its certificates as a secret, its proxies, nothing else."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from mpiboot.images import command, foreign
from mpiboot.images.context import EPOCH, assemble
from mpiboot.images.matrix import load
from mpiboot.images.publish import remote_tag
from mpiboot.images.reference import TagError, tagged

if TYPE_CHECKING:
    from pathlib import Path


def test_proxies_go_in_and_other_variables_do_not() -> None:
    environment = {"http_proxy": "http://p:3128", "HTTPS_PROXY": "http://p:3128", "no_proxy": "", "PASSWORD": "x"}
    assert command.proxies(environment) == {"http_proxy": "http://p:3128", "HTTPS_PROXY": "http://p:3128"}


@pytest.mark.parametrize(
    ("url", "local"),
    [("http://127.0.0.1:1", True), ("http://localhost:1", True), ("http://[::1]:1", True), ("http://10.0.0.1", False)],
)
def test_proxy_on_loopback_is_reached_from_the_hosts_network(url: str, local: bool) -> None:
    assert command.proxy_is_local({"https_proxy": url}) is local
    assert not command.proxy_is_local({"no_proxy": url})


def test_certificates_are_a_secret(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text("x")
    assert command.secrets({"SSL_CERT_FILE": str(bundle)}) == ["--secret", f"id=ca,src={bundle}"]


def test_certificates_that_are_named_but_missing_are_not_offered(tmp_path: Path) -> None:
    assert str(tmp_path) not in " ".join(command.secrets({"SSL_CERT_FILE": str(tmp_path / "none")}))


def test_builds_go_to_the_engine_whatever_builder_is_chosen() -> None:
    environment = command.environment({"BUILDX_BUILDER": "farm", "HOME": "/root"})
    assert environment == {"BUILDX_BUILDER": "default", "DOCKER_BUILDKIT": "1", "HOME": "/root"}


def test_labels_tell_runtime_version_and_base() -> None:
    labels = command.labels(load().get("mpich"), "debian:trixie-slim", "5.0.2")
    assert labels["org.opencontainers.image.version"] == "5.0.2"
    assert labels["org.opencontainers.image.base.name"] == "debian:trixie-slim"
    assert labels["dev.mpiboot.runtime"] == "mpich"


def test_context_is_whole_and_the_same_each_time(tmp_path: Path) -> None:
    assemble(tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert {"Dockerfile", "kit/lib/lib.sh", "nss/mpi_nss.c"} <= found
    assert {"package/mpiboot/__main__.py", "package/mpiboot/ssh/shim.sh"} <= found
    assert not [name for name in found if "__pycache__" in name]
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mtime == EPOCH
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644)
        assert not path.is_symlink()


@pytest.mark.parametrize(
    ("registry", "there"),
    [
        ("localhost:5000", "localhost:5000/mpiboot/openmpi:5.0.7"),
        ("registry.example/", "registry.example/mpiboot/openmpi:5.0.7"),
        ("registry.example/team", "registry.example/team/openmpi:5.0.7"),
        ("https://registry.example/team/", "registry.example/team/openmpi:5.0.7"),
    ],
)
def test_tag_in_a_registry(registry: str, there: str) -> None:
    assert remote_tag("mpiboot/openmpi:5.0.7", registry) == there


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("mine", "mine:latest"),
        ("mine:v1", "mine:v1"),
        ("team/mine", "team/mine:latest"),
        ("host:5000/mine", "host:5000/mine:latest"),
        ("host:5000/team/mine:v1.2-x", "host:5000/team/mine:v1.2-x"),
        ("localhost:5000", "localhost:5000"),  # an image called localhost, as Docker has it
        ("[::1]:5000/mine", "[::1]:5000/mine:latest"),
    ],
)
def test_a_name_without_a_tag_is_latest(given: str, whole: str) -> None:
    assert tagged(given) == whole


@pytest.mark.parametrize("given", ["Mine", "mine:", "mine:v 1", "a//b", "-mine", "mine:" + "x" * 129, "https://h/mine"])
def test_a_name_that_no_image_can_have_is_told_before_the_build(given: str) -> None:
    with pytest.raises(TagError, match="not a name for an image"):
        tagged(given)


def test_an_image_cannot_be_named_by_a_digest() -> None:
    with pytest.raises(TagError, match="has a digest"):
        tagged("host:5000/mine@sha256:" + "0" * 64)


@pytest.mark.parametrize(
    ("release", "objection"),
    [
        ('ID=debian\nVERSION_ID="12"', None),
        ('ID=debian\nVERSION_ID="13"', None),
        ("ID=debian", None),
        ('ID=debian\nVERSION_ID="11"\nPRETTY_NAME="Debian 11"', "is Debian 11, too old"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"', None),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04"', "is Ubuntu 22.04, too old"),
        ('ID=pop\nID_LIKE="ubuntu debian"\nVERSION_ID="22.04"', None),
        ('ID=fedora\nPRETTY_NAME="Fedora Linux 42"', "is Fedora Linux 42; needs Debian 12"),
        ("", "is an unknown system"),
    ],
)
def test_bases_that_are_not_supported_are_told_apart(release: str, objection: str | None) -> None:
    said = foreign.objection(release)
    assert said is None if objection is None else said is not None and objection in said
