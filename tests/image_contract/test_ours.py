"""Each of our images fulfils the whole contract, and nothing of it is left unchecked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpiboot.images.contract import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.image_contract.conftest import Checked

ALL = {profile.word for profile in Profile}
RUNTIMES = ("openmpi", "mpich", "intel")
NAMES = (*RUNTIMES, "openmpi-cuda", *(f"{name}-dev" for name in RUNTIMES), "horovod-torch", "horovod-tensorflow")


@pytest.mark.parametrize("name", NAMES)
def test_ours_fulfils_everything(image: Callable[[str], str], check: Callable[[str], Checked], name: str) -> None:
    fulfils_everything(check(image(name)))


def test_image_that_is_built_only_when_named_does_too(
    optional_image: Callable[[str], str], check: Callable[[str], Checked]
) -> None:
    fulfils_everything(check(optional_image("horovod-torch-cuda")))


def fulfils_everything(checked: Checked) -> None:
    assert (checked.code, checked.works, checked.points("fault")) == (0, ALL, set())
    assert checked.points("not checked") == set()
    assert all(set(checked.steps(profile).values()) == {"ok"} for profile in ALL)


@pytest.mark.parametrize(
    ("name", "program"), [("mpich", "/opt/mpich/bin/mpirun"), ("intel", "/opt/intel-mpi/bin/mpiexec.hydra")]
)
def test_programs_behind_our_stubs_are_looked_at(
    image: Callable[[str], str], check: Callable[[str], Checked], name: str, program: str
) -> None:
    assert program in check(image(name)).observed("libraries")
