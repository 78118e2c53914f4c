"""The function that checks each static point of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.check import file_points, mpi_points, ssh_points, user_points
from mpiboot.images.check.host import MissingToolError
from mpiboot.images.check.outcome import Answer, Finding, fault, finding, not_checked
from mpiboot.images.contract import STATIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.images.check.subject import Subject

CHECKS: dict[str, Callable[[Subject], Answer]] = {
    "shell": user_points.shell,
    "sshd": ssh_points.sshd,
    "ssh-client": ssh_points.ssh_client,
    "mpirun": mpi_points.mpirun,
    "libraries": mpi_points.libraries,
    "sshd-config": ssh_points.sshd_config,
    "sshd-port": ssh_points.sshd_port,
    "ports-agree": ssh_points.ports_agree,
    "sshd-authorized-keys": ssh_points.sshd_authorized_keys,
    "sshd-strict-modes": ssh_points.sshd_strict_modes,
    "sshd-passwords": ssh_points.sshd_passwords,
    "sshd-penalties": ssh_points.sshd_penalties,
    "host-keys-baked": file_points.host_keys_baked,
    "login-keys-baked": file_points.login_keys_baked,
    "client-checks": ssh_points.client_checks,
    "file-capabilities": file_points.file_capabilities,
    "user": user_points.user,
    "home": user_points.home,
    "login-shell": user_points.login_shell,
    "any-uid-name": user_points.any_uid_name,
    "entrypoint": user_points.entrypoint,
    "python": mpi_points.python,
    "gpu-variables": mpi_points.gpu_variables,
    "labels": user_points.labels,
    "size": file_points.size,
}


def check(subject: Subject, say: Callable[[str], None]) -> tuple[Finding, ...]:
    """Every static point with its answer, in the contract's order. The point that runs at the time limit is a fault."""
    findings = []
    for point in STATIC:
        if subject.cutoff.why:
            findings.append(finding(point.id, not_checked("the time limit came before this point")))
            continue
        say(point.id)
        findings.append(finding(point.id, _answer(subject, point.id)))
    say("done")
    return tuple(findings)


def _answer(subject: Subject, point_id: str) -> Answer:
    from docker.errors import DockerException
    from requests import RequestException

    try:
        answer = CHECKS[point_id](subject)
    except MissingToolError as error:
        answer = not_checked(str(error))
    except (DockerException, RequestException):
        if subject.cutoff.why is None:
            raise
    # A result from a container that the time limit removed says nothing about the image.
    return fault(subject.cutoff.why) if subject.cutoff.why else answer
