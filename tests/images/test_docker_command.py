"""What a build is given of this machine: its certificates as a secret, its proxies, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.images.build import base_probe, docker_command
from mpiboot.images.build.publish import remote_tag
from mpiboot.images.build.tag import TagError, tagged
from mpiboot.images.matrix import load
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def test_proxies_go_in_and_other_variables_do_not() -> None:
    environment = {"http_proxy": "http://p:3128", "HTTPS_PROXY": "http://p:3128", "no_proxy": "", "PASSWORD": "x"}
    assert docker_command.proxies(environment) == {"http_proxy": "http://p:3128", "HTTPS_PROXY": "http://p:3128"}


@pytest.mark.parametrize(
    ("url", "local"),
    [("http://127.0.0.1:1", True), ("http://localhost:1", True), ("http://[::1]:1", True), ("http://10.0.0.1", False)],
)
def test_proxy_on_loopback_is_reached_from_the_hosts_network(url: str, local: bool) -> None:
    assert docker_command.proxy_is_local({"https_proxy": url}) is local
    assert not docker_command.proxy_is_local({"no_proxy": url})


def test_certificates_are_a_secret(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text("x")
    assert docker_command.secrets({"SSL_CERT_FILE": str(bundle)}) == ["--secret", f"id=ca,src={bundle}"]


def test_certificates_that_are_named_but_missing_are_not_offered(tmp_path: Path) -> None:
    assert str(tmp_path) not in " ".join(docker_command.secrets({"SSL_CERT_FILE": str(tmp_path / "none")}))


def test_builds_go_to_the_engine_whatever_builder_is_chosen() -> None:
    environment = docker_command.environment({"BUILDX_BUILDER": "farm", "HOME": "/root"})
    assert environment == {"BUILDX_BUILDER": "default", "DOCKER_BUILDKIT": "1", "HOME": "/root"}


def test_labels_tell_runtime_version_and_base() -> None:
    labels = docker_command.labels(load().get("mpich"), "debian:trixie-slim", "5.0.2")
    assert labels["org.opencontainers.image.version"] == "5.0.2"
    assert labels["org.opencontainers.image.base.name"] == "debian:trixie-slim"
    assert labels["mpiboot.dev/runtime"] == "mpich"


@pytest.mark.parametrize(
    ("registry", "there"),
    [
        ("localhost:5000", "localhost:5000/mpiboot/openmpi:5.0.7"),
        ("registry.example/", "registry.example/mpiboot/openmpi:5.0.7"),
        ("registry.example/team", "registry.example/team/mpiboot-openmpi:5.0.7"),
        ("https://registry.example/team/", "registry.example/team/mpiboot-openmpi:5.0.7"),
        ("registry.example/team/mpiboot", "registry.example/team/mpiboot/openmpi:5.0.7"),
    ],
)
def test_tag_in_a_registry(registry: str, there: str) -> None:
    assert remote_tag("mpiboot/openmpi:5.0.7", registry) == there


@pytest.mark.parametrize("registry", ["registry.example", "registry.example/team", "registry.example/team/mpiboot"])
def test_operator_knows_every_pushed_image_with_mpi_by_its_name(registry: str) -> None:
    pushed = [remote_tag(row.latest, registry) for row in load().rows.values() if row.runs_mpi]
    assert [name for name in pushed if not Settings().is_own(name)] == []


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
def test_a_name_that_no_image_can_have_is_refused_before_the_build(given: str) -> None:
    with pytest.raises(TagError, match="is not a name for an image"):
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
        ('ID=debian\nVERSION_ID="11"\nPRETTY_NAME="Debian 11"', "is Debian 11, which is too old"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"', None),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04"', "is Ubuntu 22.04, which is too"),
        ('ID=pop\nID_LIKE="ubuntu debian"\nVERSION_ID="22.04"', None),
        ('ID=fedora\nPRETTY_NAME="Fedora Linux 42"', "is Fedora Linux 42; the base must be Debian 12"),
        ("", "is an unknown system"),
    ],
)
def test_bases_that_are_not_supported_get_the_reason(release: str, objection: str | None) -> None:
    said = base_probe.unsupported_reason(release)
    assert said is None if objection is None else said is not None and objection in said
