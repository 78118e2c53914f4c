"""Training on two workers: the same losses as on one, ranks where they belong, with mpirun and with horovodrun."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.horovod.conftest import Trained

    Tag = Callable[[str], str]
    Run = Callable[..., Trained]

pytestmark = [pytest.mark.timeout(1200)]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# No single quotes: it is between two of them on a command line. %s is the framework.
WHERE = """
import os, socket, horovod.%s as hvd
hvd.init()
place = [socket.gethostname(), os.getcwd(), os.environ["WORD"]]
place = hvd.allgather_object(place)[hvd.rank()]
print("rank", hvd.rank(), "of", hvd.size(), "on", *place, flush=True)
"""


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_two_workers_learn_what_one_does(image: Tag, run: Run, framework: str) -> None:
    program = ["--", "python", f"/examples/{framework}/mnist.py", "--steps", "40"]
    alone = run("-n", "1", image(f"horovod-{framework}"), *program)
    both = run("-n", "2", "--workers", "2", image(f"horovod-{framework}"), *program)
    assert set(alone.sizes) == {1}
    assert set(both.sizes) == {2}
    assert alone.losses.keys() == both.losses.keys() == {1, 10, 20, 30, 40}
    assert both.losses[40] < both.losses[20] < both.losses[1]
    assert list(both.losses.values()) == pytest.approx(list(alone.losses.values()), rel=1e-3)


# Where two ranks of a host go has nothing to do with the framework; each imports it, which takes seconds of tensorflow.
@pytest.mark.parametrize(("framework", "slots"), [("torch", 2), ("tensorflow", 1)])
def test_mpirun_and_horovodrun_place_ranks_alike_from_any_directory(
    image: Tag, script: Run, name: str, framework: str, slots: int
) -> None:
    ranks = 2 * slots
    hosts = "--hostfile /etc/mpi/hostfile"
    python = f"python -c '{WHERE % framework}'"
    starts = {
        "/tmp": f"mpirun -n {ranks} -x WORD {python}",
        "/usr/lib": f"horovodrun --gloo -np {ranks} {hosts} {python}",
        "/var": f"horovodrun --mpi -np {ranks} {hosts} {python}",
    }
    ways = "; ".join(f"cd {folder}; export WORD=from{folder}; {start} || exit" for folder, start in starts.items())
    said = script(image(f"horovod-{framework}"), ways, slots=slots).text
    for folder in starts:
        found = re.findall(rf"rank (\d) of {ranks} on (\S+) {folder} from{folder}$", said, re.MULTILINE)
        assert sorted(rank for rank, _ in found) == [str(rank) for rank in range(ranks)], said
        assert Counter(host for _, host in found) == {f"{name}-worker-0": slots, f"{name}-worker-1": slots}


def test_job_of_the_old_documentation_runs_as_it_was_printed(
    image: Tag, mpiboot: Callable[..., subprocess.CompletedProcess[str]], name: str
) -> None:
    image("horovod-tensorflow")
    done = mpiboot("run", "--engine", "docker", "--name", name, "-f", str(EXAMPLES / "mpi-hvd.yaml"), timeout=540)
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"step \d+ loss ([\d.]+) size 2", done.stdout)]
    assert len(losses) == 11
    assert losses[-1] < losses[0]
    assert sorted(re.findall(r"rank (\d) of 2 trained 100 steps", done.stdout)) == ["0", "1"]
    assert "resources.request" in done.stderr
