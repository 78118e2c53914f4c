"""Texts of container runtimes about images, as they were seen, and what users read instead."""

from __future__ import annotations

import pytest

from mpiboot.kube import pull_errors

REACH = 'failed to pull and unpack image "docker.io/x/y:1": failed to resolve reference "docker.io/x/y:1"'
TEXTS = [
    ("ErrImagePull", (f'{REACH}: failed to do request: Head "https://registry-1.docker.io/v2/x/y/manifests/1": '
     "dial tcp: lookup registry-1.docker.io on 10.0.2.3:53: no such host"), "no such host: registry-1.docker.io"),
    ("ErrImagePull", f"{REACH}: docker.io/nosuch/image:1: not found", "the registry does not have it"),
    ("ErrImagePull", (f"{REACH}: pull access denied, repository does not exist or may require authorization: server "
     "message: insufficient_scope: authorization failed"),
     "the registry refuses it: it does not exist there, or it needs imagePullSecrets"),
    ("ErrImagePull", ('failed to do request: Head "https://localhost:1/v2/no/such-image/manifests/1": dial tcp '
     "127.0.0.1:1: connect: connection refused"), "connection refused"),
    ("ErrImagePull", ('Head "https://r/v2/": tls: failed to verify certificate: x509: certificate signed by unknown '
     "authority"), "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
    ("ImagePullBackOff", (f'Back-off pulling image "nosuch/image:1": ErrImagePull: {REACH}: '
     "docker.io/nosuch/image:1: not found"), "the registry does not have it"),
    ("InvalidImageName", ('Failed to apply default image tag "A B": couldn\'t parse image name "A B": invalid '
     "reference format"), "that is no image's name"),
    ("ErrImageNeverPull", 'Container image "x" is not present with pull policy of Never',
     "it is not on the node, and the pull policy is Never"),
    ("ErrImagePull", "rpc error: code = Unknown desc = something new", "code = Unknown desc = something new"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "message", "cause"), TEXTS)
def test_a_cause_has_few_words(reason: str, message: str, cause: str) -> None:
    container = {"image": "nosuch/image:1", "state": {"waiting": {"reason": reason, "message": message}}}
    assert pull_errors.short(container) == f"cannot pull nosuch/image:1: {cause}"
    assert pull_errors.text_of(container) == message


@pytest.mark.parametrize("state", [
    {}, {"running": {}}, {"waiting": {}}, {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
])  # fmt: skip
def test_another_state_is_no_failed_pull(state: dict[str, dict[str, str]]) -> None:
    assert pull_errors.short({"image": "x", "state": state}) == ""


def test_an_old_kubelet_gives_no_cause_between_two_tries() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x:1"'}
    assert pull_errors.short({"image": "x:1", "state": {"waiting": waiting}}) == "cannot pull x:1"
