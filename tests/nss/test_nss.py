"""The NSS module alone: which names it gives, under every uid that clusters give to containers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY
from tests.containers import HARDENED
from tests.foreign.build import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

    Run = Callable[[str, str], tuple[int, str]]

ANY_UIDS = (300, 12345, 1000680000)
MPIUSER = "mpiuser:x:1000:0::/home/mpiuser:/bin/bash"


@pytest.fixture(scope="module")
def tag(docker_engine: docker.DockerClient) -> str:
    return build(docker_engine, Path(__file__).parent, context=REPOSITORY)


def running(engine: docker.DockerClient, tag: str, **options: object) -> Iterator[Run]:
    container = engine.containers.run(tag, ["sleep", "600"], detach=True, labels=["mpiboot-test"], **options)  # type: ignore[call-overload]

    def run(user: str, command: str) -> tuple[int, str]:
        code, output = container.exec_run(["sh", "-c", command], user=user)
        return code, output.decode().strip()

    try:
        yield run
    finally:
        container.remove(force=True, v=True)


@pytest.fixture(scope="module")
def hardened(docker_engine: docker.DockerClient, tag: str) -> Iterator[Run]:
    """Runs a command as a user in a container that may do nothing."""
    yield from running(docker_engine, tag, **HARDENED)


@pytest.fixture(scope="module")
def ordinary(docker_engine: docker.DockerClient, tag: str) -> Iterator[Run]:
    """Runs a command as a user in a container with the engine's defaults, where sshd runs as root."""
    yield from running(docker_engine, tag)


@pytest.mark.parametrize("uid", ANY_UIDS)
def test_unknown_uid_is_mpiuser(hardened: Run, uid: int) -> None:
    line = f"mpiuser:*:{uid}:0:MPI user:/home/mpiuser:/bin/bash"
    code, said = hardened(f"{uid}:0", f"id -un; getent passwd {uid}; getent passwd mpiuser")
    assert (code, said.splitlines()) == (0, ["mpiuser", line, line])


@pytest.mark.parametrize(("uid", "name"), [(0, "root"), (1000, "mpiuser"), (1500, "alice")])
def test_uid_in_passwd_keeps_its_own_line(hardened: Run, uid: int, name: str) -> None:
    assert hardened(f"{uid}:0", "id -un; getent passwd mpiuser") == (0, f"{name}\n{MPIUSER}")


@pytest.mark.parametrize("uid", [0, 1000, 300, 12345])
def test_another_user_is_looked_up_in_passwd(hardened: Run, uid: int) -> None:
    assert hardened(f"{uid}:0", "getent passwd 1500 alice | cut -d: -f1,3") == (0, "alice:1500\nalice:1500")


@pytest.mark.parametrize("uid", [0, 1000, 300, 12345, 1000680000])
@pytest.mark.parametrize("unknown", ["no-such-user", "4242", "mpiuser2", "mpi"])
def test_who_does_not_exist_is_not_found(hardened: Run, uid: int, unknown: str) -> None:
    assert hardened(f"{uid}:0", f"getent passwd {unknown}") == (2, "")


def test_group_of_caller_is_kept(hardened: Run) -> None:
    assert hardened("12345:777", "getent passwd mpiuser | cut -d: -f3,4") == (0, "12345:777")


def test_buffers_of_any_size_and_threads(hardened: Run) -> None:
    strings = sum(len(field) + 1 for field in ("mpiuser", "*", "MPI user", "/home/mpiuser", "/bin/bash"))
    code, said = hardened("12345:0", "lookups")
    assert code == 0
    found = dict(word.split("=") for word in said.split())
    # The module copies the literal's own closing zero too.
    assert int(found["enough"]) in {strings, strings + 1}
    assert (found["wrong"], found["failed"]) == ("0", "0")


def test_no_file_descriptor_leaks(hardened: Run) -> None:
    fifty = "$(seq -s ' ' 50 | sed 's/[0-9][0-9]*/mpiuser/g')"
    code, said = hardened("12345:0", f"ulimit -n 16; getent passwd {fifty}")
    assert (code, len(said.splitlines())) == (0, 50)


SSHD = (
    "/usr/sbin/sshd -p {port} -o HostKey={key} -o PidFile=none -o StrictModes=no -o UsePAM=no "
    "-o AuthorizedKeysFile=/keys/client.pub"
)
SSH = (
    "cp /keys/client /tmp/{uid} && chmod 0600 /tmp/{uid} && ssh -p {port} -i /tmp/{uid} -o BatchMode=yes "
    "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR {name}127.0.0.1 'id -u; id -un'"
)


@pytest.fixture(scope="module")
def root_sshd(ordinary: Run) -> int:
    """The port of an sshd that runs as root."""
    start = SSHD.format(port=2000, key="/tmp/host")
    assert ordinary("0", f"cp /keys/host /tmp/host && chmod 0600 /tmp/host && {start}") == (0, "")
    return 2000


@pytest.mark.parametrize("uid", ANY_UIDS)
def test_any_uid_serves_itself_beside_a_root_sshd(ordinary: Run, root_sshd: int, uid: int) -> None:
    port = 3000 + ANY_UIDS.index(uid)
    assert ordinary(f"{uid}:0", SSHD.format(port=port, key="/keys/host")) == (0, "")

    own = ordinary(f"{uid}:0", SSH.format(uid=uid, port=port, name=""))
    through_root = ordinary(f"{uid}:0", SSH.format(uid=uid, port=root_sshd, name="mpiuser@"))

    assert own == (0, f"{uid}\nmpiuser")
    assert through_root == (0, "1000\nmpiuser")
