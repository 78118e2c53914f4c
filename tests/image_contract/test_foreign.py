"""What the checker says about images of other makers, tried on real containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.contract import LIVE, POINTS, STATIC, Profile

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.image_contract.conftest import Checked

    Check = Callable[[str], Checked]
    Cli = Callable[..., subprocess.CompletedProcess[str]]
    Foreign = Callable[[str], str]

ALL = {profile.word for profile in Profile}


def test_peers_image_runs_as_root_only(foreign: Foreign, check: Check) -> None:
    checked = check(foreign("peers"))
    assert (checked.code, checked.works) == (1, {"own"})
    assert checked.profile("own")["user"] == "root"
    assert {"file-capabilities", "host-keys-baked", "client-checks", "user", "any-uid-name"} <= checked.points("fault")
    assert "/usr/sbin/sshd" in checked.observed("file-capabilities")


def test_peers_image_hardened_fails_for_its_capability(foreign: Foreign, check: Check) -> None:
    hardened = check(foreign("peers")).profile("hardened")
    assert hardened["change"][0] == "file-capabilities"
    assert "Operation not permitted" in hardened["steps"][-1]["saw"]
    assert "file-capabilities" not in check(foreign("peers")).profile("any-uid")["change"]


def test_guides_image_runs_as_its_own_user_only(foreign: Foreign, check: Check) -> None:
    checked = check(foreign("guide"))
    assert (checked.code, checked.works) == (1, {"own"})
    assert checked.profile("own")["user"] == "user"
    assert checked.profile("any-uid")["change"] == ["home", "any-uid-name"]
    assert not {"file-capabilities", "host-keys-baked", "login-keys-baked"} & checked.points("fault")


def test_guides_image_once_repaired_runs_hardened(image: Callable[[str], str], foreign: Foreign, check: Check) -> None:
    image("openmpi")
    checked = check(foreign("repaired"))
    assert (checked.code, checked.works) == (0, ALL)
    # python3-minimal has no mpi4py: the ranks call the library themselves.
    assert checked.profile("hardened")["steps"][-1]["saw"].endswith("by libmpi.so.40")


def test_image_without_python_has_its_ranks_counted(foreign: Foreign, check: Check) -> None:
    steps = check(foreign("guide")).steps("own")
    assert (steps["live-ranks"], steps["live-allreduce"]) == ("ok", "not checked")


def test_report_of_an_image_without_python_names_what_was_not_checked(foreign: Foreign, mpiboot: Cli) -> None:
    done = mpiboot("images", "check", foreign("guide"))
    assert (done.returncode, done.stdout.splitlines()[-1].rpartition(";")[2]) == (0, " not checked: live-allreduce")


def test_image_without_sshd_is_faulted_for_it(bare: str, check: Check) -> None:
    checked = check(bare)
    assert (checked.code, checked.works) == (1, set())
    assert {"sshd", "ssh-client", "mpirun"} <= checked.points("fault")
    assert checked.profile("own")["change"][0] == "sshd"


def test_report_on_an_image_without_sshd_begins_with_what_to_do(bare: str, mpiboot: Cli) -> None:
    done = mpiboot("images", "check", bare)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{bare} cannot run MPI jobs as 'own': no /usr/sbin/sshd; {POINTS['sshd'].fix}\n")


def test_misconfigured_sshd_is_quoted(foreign: Foreign, check: Check) -> None:
    checked = check(foreign("misconfigured"))
    assert "portnumber" in checked.observed("sshd-config").lower()
    assert checked.profile("own")["change"] == ["sshd-config"]


def test_spoiled_image_is_faulted_for_all_that_was_spoiled(foreign: Foreign, check: Check) -> None:
    spoiled = {
        "login-shell", "login-keys-baked", "ports-agree", "sshd-port", "sshd-strict-modes", "sshd-authorized-keys",
        "libraries", "gpu-variables", "size", "entrypoint",
    }  # fmt: skip
    checked = check(foreign("spoiled"))
    assert checked.works == set()
    assert spoiled <= checked.points("fault")
    assert "libprrte" in checked.observed("libraries")


def test_every_point_is_seen_broken_and_whole(
    image: Callable[[str], str], foreign: Foreign, bare: str, check: Check
) -> None:
    """A check that always says the same would pass every other test here."""
    names = ("peers", "guide", "spoiled", "misconfigured")
    broken = set().union(*(check(tag).points("fault") for tag in (bare, *map(foreign, names))))
    whole = set().union(*(check(image(name)).points("ok") for name in ("openmpi", "openmpi-cuda")))
    points = {point.id for point in STATIC}
    # Without a shell there is no report: test_ends.py.
    broken.add("shell")
    assert (points - broken, points - whole) == (set(), set())


def test_every_step_is_tried_in_order(foreign: Foreign, check: Check) -> None:
    assert list(check(foreign("guide")).steps("own")) == [point.id for point in LIVE]
