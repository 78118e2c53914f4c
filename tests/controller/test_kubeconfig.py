"""Kubeconfigs and service accounts that no client can use end in one line, which names the file."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from mpiboot.job.errors import UserError
from mpiboot.kube.connection import from_kubeconfig, in_cluster

if TYPE_CHECKING:
    from pathlib import Path


def config(**cluster: object) -> bytes:
    """A kubeconfig with one cluster and one user."""
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}], "users": [{"name": "x", "user": {}}],
    }).encode()  # fmt: skip


BAD = {
    "nothing": (b"", "is not a kubeconfig"),
    "a word": (b"hello", "is not a kubeconfig"),
    "a list": (b"[]", "is not a kubeconfig"),
    "no YAML": (b"a: [1,", "is not a kubeconfig"),
    "no text": (b"\x00\xff", "is not a kubeconfig"),
    "a number for a server": (config(server=17), "is not a kubeconfig"),
    "no URL": (config(server="here"), "the server 'here' must start with https:// or http://"),
    "an authority that is none": (config(server="https://h", **{"certificate-authority-data": "eHh4"}), "certificate"),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_a_bad_kubeconfig_is_one_line(tmp_path: Path, text: bytes, reason: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(text)
    with pytest.raises(UserError) as error:
        asyncio.run(from_kubeconfig(str(file)))
    message = str(error.value)
    assert message.startswith(f"no cluster: {file}")
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize("authority", [None, b"no certificate"])
def test_a_pod_with_half_a_service_account_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: bytes | None
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (tmp_path / "token").write_text("token")
    (tmp_path / "namespace").write_text("default")
    if authority:
        (tmp_path / "ca.crt").write_bytes(authority)
    with pytest.raises(UserError) as error:
        in_cluster(tmp_path)
    assert str(error.value).startswith(f"no cluster: {tmp_path} is not what Kubernetes mounts into pods: ")
    assert "\n" not in str(error.value)
