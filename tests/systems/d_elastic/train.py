"""Real training with torch that continues until the test touches a file on one of its workers."""

# What it imports is in its image only.
# mypy: ignore-errors
# ruff: noqa: T201

import socket
import time
from pathlib import Path

import horovod.torch as hvd
import torch

ENOUGH = Path("/tmp/enough")


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    print(f"rank {hvd.rank()} of {hvd.size()} on {socket.gethostname()}", flush=True)
    enough = False
    while not enough:
        state.optimizer.zero_grad()
        seen = torch.rand(20, 8)
        loss = (state.model(seen) - seen.sum(1, keepdim=True)).square().mean()
        loss.backward()
        state.optimizer.step()
        state.step += 1
        if hvd.rank() == 0:
            print(f"step {state.step} loss {loss.item():.6f} size {hvd.size()}", flush=True)
        # All ranks learn of it in the same step.
        enough = bool(hvd.allreduce(torch.tensor(float(ENOUGH.exists())), op=hvd.Sum, name="enough"))
        time.sleep(0.1)
        state.commit()


def main() -> None:
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.02), named_parameters=model.named_parameters()
    )
    train(hvd.elastic.TorchState(model, optimizer, step=0))
    if hvd.rank() == 0:
        print(f"trained, at the end with {hvd.size()}", flush=True)


if __name__ == "__main__":
    main()
