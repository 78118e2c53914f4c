"""`deepspeed` as it is, in a launcher of two workers: it finds the hosts, its pdsh logs in, and the ranks train."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.horovod.conftest import Trained

pytestmark = [pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    ("name_of_image", "options"),
    [
        ("deepspeed", "--ssh_port 22"),
        ("deepspeed", "--launcher openmpi"),
        ("deepspeed-mpich", ""),
        ("deepspeed-mpich", "--launcher mpich"),
        ("deepspeed-intel", "--launcher impi"),
    ],
)
def test_deepspeed_trains_on_all_workers(
    optional_image: Callable[[str], str], script: Callable[..., Trained], name: str, name_of_image: str, options: str
) -> None:
    start = f"deepspeed {options} /examples/deepspeed/zero.py --steps 20"
    done = script(optional_image(name_of_image), f"cd /tmp; echo WORD=passed >.deepspeed_env; {start}", slots=2)
    ranks = set(re.findall(r"rank (\d) of 4 on (\S+) local rank (\d) word (passed)", done.text))
    assert ranks == {(str(n), f"{name}-worker-{n // 2}", str(n % 2), "passed") for n in range(4)}
    assert done.losses[20] < done.losses[10] < done.losses[1]
