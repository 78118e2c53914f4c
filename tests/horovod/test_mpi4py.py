"""mpi4py and Horovod in one program: the same ranks for both, where they belong."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.horovod.conftest import Trained

    Tag = Callable[[str], str]
    Run = Callable[..., Trained]

pytestmark = [pytest.mark.timeout(1200)]
# No single quotes: it is between two of them on a command line. %s is the framework.
BOTH = """
import socket
from mpi4py import MPI
import horovod.%s as hvd
hvd.init()
world = MPI.COMM_WORLD
by_mpi = world.allreduce(world.rank + 1)
by_horovod = sum(hvd.allgather_object(hvd.rank() + 1))
place = world.allgather(socket.gethostname())[world.rank]
sizes = world.size, hvd.size()
print("ranks", world.rank, hvd.rank(), "of", *sizes, "sums", by_mpi, by_horovod, "on", place, flush=True)
"""


@pytest.mark.parametrize("start", ["mpirun -n 4", "horovodrun --mpi -np 4 --hostfile /etc/mpi/hostfile"])
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_one_program_reduces_with_both(image: Tag, script: Run, name: str, framework: str, start: str) -> None:
    said = script(image(f"horovod-{framework}"), f"{start} python -c '{BOTH % framework}'", slots=2).text
    found = re.findall(r"ranks (\d) (\d) of 4 4 sums 10 10 on (\S+)$", said, re.MULTILINE)
    assert sorted((by_mpi, by_horovod) for by_mpi, by_horovod, _ in found) == [(str(r), str(r)) for r in range(4)], said
    assert Counter(host for *_, host in found) == {f"{name}-worker-0": 2, f"{name}-worker-1": 2}
