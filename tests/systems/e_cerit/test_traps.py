"""The traps that the guide's readers fall into: told by `mpiboot lint` before the start, and by an event after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.systems.shell import Shell

GUIDE = (Path(__file__).parent / "mpijob.yaml").read_text()
GUIDE = GUIDE.replace("COMMAND", "/home/user/pi").replace("IMAGE", "me/pi:1")
LAUNCHER, WORKER = GUIDE.split("    Worker:\n")

USER = "E: lint finds a user name that does not match sshAuthMountPath"
RANKS = "E: lint finds an -n that does not match replicas and slots"
QUOTES = "E: lint finds an unquoted -n"
IMAGES = "E: lint finds different images for launcher and worker"

# A mistake of a reader, and the message about it.
TRAPS = [
    pytest.param(
        GUIDE.replace("/home/user/.ssh", "/home/mpiuser/.ssh"),
        "refers to /home/user, but the SSH keys are in /home/mpiuser/.ssh; check which user the container runs as",
        id="another user", marks=pytest.mark.promise(USER),
    ),
    pytest.param(
        GUIDE.replace("  sshAuthMountPath: /home/user/.ssh\n", ""),
        "runs as user 1000, whose SSH looks for keys in its own home, not in /root/.ssh",
        id="no mount path", marks=pytest.mark.promise(USER),
    ),
    pytest.param(
        GUIDE.replace('"2"', '"4"'), "asks for 4 ranks, but there are 2 slots: 2 x 1",
        id="more ranks", marks=pytest.mark.promise(RANKS),
    ),
    pytest.param(
        GUIDE.replace('"2"', '"1"'),
        "asks for 1 rank, and there are 2 slots (2 x 1): 1 of 2 hosts can go without a rank",
        id="fewer ranks", marks=pytest.mark.promise(RANKS),
    ),
    pytest.param(
        GUIDE.replace('"2"', "2"), "must be text, is 2: put it in quotes; used as '2'",
        id="no quotes", marks=pytest.mark.promise(QUOTES),
    ),
    pytest.param(
        f"{LAUNCHER}    Worker:\n{WORKER.replace('me/pi:1', 'me/pi:2')}",
        "is me/pi:2, the launcher's is me/pi:1: program and MPI must be the same in both",
        id="two images", marks=pytest.mark.promise(IMAGES),
    ),
]  # fmt: skip


def test_the_guides_own_manifest_is_fine(shell: Shell) -> None:
    assert shell("mpiboot lint -f -", given=GUIDE) == ""


@pytest.mark.promise("E: the guide's traps are reported by an event")
@pytest.mark.parametrize(("manifest", "message"), TRAPS)
def test_a_trap_is_found_by_lint_and_reported_by_an_event(shell: Shell, manifest: str, message: str) -> None:
    assert manifest != GUIDE
    (shell.home / "mpijob.yaml").write_text(manifest)
    found = shell("mpiboot lint -f mpijob.yaml || test $? = 1").splitlines()
    assert any(line.startswith("mpijob.yaml:") and message in line for line in found), found
    shell("kubectl create -f mpijob.yaml -n $NAMESPACE")
    told = "kubectl get events --field-selector reason=ValidationWarning -o jsonpath='{.items[*].message}'"
    shell.until("an event", lambda: message in shell(told))
