"""torch alone on two workers, by mpirun, torchrun and accelerate: the same losses, and ranks where they belong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.horovod.conftest import Trained

pytestmark = [pytest.mark.timeout(1200)]
TRAIN = "/examples/torch/ddp.py --steps 20"
ONE_EACH = {"deepspeed": "-N 1", "deepspeed-mpich": "-ppn 1", "deepspeed-intel": "-ppn 1"}


@pytest.mark.parametrize("name_of_image", ONE_EACH)
def test_every_way_to_start_torch_gives_the_same_losses(
    optional_image: Callable[[str], str], script: Callable[..., Trained], name: str, name_of_image: str
) -> None:
    each = f"mpirun -n 2 {ONE_EACH[name_of_image]}"
    at = "--rdzv-backend c10d --rdzv-id job --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT"
    accelerate = "accelerate launch --cpu --num_machines 2 --num_processes 4 --mpirun_hostfile $MPIBOOT_HOSTFILE"
    main_process = "--main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT"
    ways = {
        "mpirun": f"mpirun -n 4 rank-env python {TRAIN}",
        "torchrun": f"{each} torchrun --nnodes 2 --nproc-per-node 2 {at} {TRAIN}",
        "accelerate": f"{accelerate} {main_process} --no_python rank-env python {TRAIN}",
    }
    said = script(
        optional_image(name_of_image),
        "; ".join(f"echo by {way}; {start} || exit" for way, start in ways.items()),
        slots=2,
    ).text
    losses = []
    for way in ways:
        part = said.partition(f"by {way}\n")[2].partition("by ")[0]
        placed = set(re.findall(r"rank (\d) of 4 on (\S+) local rank (\d)", part))
        assert placed == {(str(n), f"{name}-worker-{n // 2}", str(n % 2)) for n in range(4)}
        losses.append([line for line in part.splitlines() if line.startswith("step ")])
    assert len(losses[0]) == 3
    assert losses[1:] == [losses[0], losses[0]]
