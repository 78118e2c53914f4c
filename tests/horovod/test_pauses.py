"""Hosts that leave and come again: when Horovod uses them again, and ranks that wait for enough of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Tag = Callable[[str], str]
    Inside = Callable[..., tuple[int, str]]

HERE = Path(__file__).parent
PAUSING, FEWER = (HERE / "pausing.py").read_text(), (HERE / "fewer.sh").read_text()
# Ends after it has trained twice. It says when it leaves its work to hear of new hosts.
TRAIN = """
import time, torch, horovod.torch as hvd
from horovod.common.exceptions import HostsUpdatedInterrupt
hvd.init()

@hvd.elastic.run
def train(state):
    state.rounds += 1
    if hvd.rank() == 0:
        print("trains with", hvd.size(), flush=True)
    for _ in range(20 if state.rounds == 2 else 10**6):
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == 2
        time.sleep(0.1)
        try:
            state.commit()
        except HostsUpdatedInterrupt:
            print("waits", flush=True)
            raise

train(hvd.elastic.TorchState(rounds=0))
"""


@pytest.mark.parametrize(("case", "started"), [("replaced", "host0 host1 host1"), ("kept", "host0 host1")])
def test_only_a_worker_that_was_started_again_is_used_at_once(
    image: Tag, inside: Inside, case: str, started: str
) -> None:
    code, text = inside(image("horovod-torch"), "python", "-c", PAUSING, case)
    assert code == 0, text
    assert started in text.splitlines(), text


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rank", ["kept", "killed"])
def test_survivors_below_the_minimum_go_on_with_the_next_host(image: Tag, inside: Inside, rank: str) -> None:
    code, text = inside(image("horovod-torch"), "bash", "-c", FEWER, "fewer.sh", TRAIN, rank, network_mode="bridge")
    assert code == 0, text
    assert "trains again" in text.splitlines(), text
