"""Train with torch while workers come and go.

    horovodrun -np 2 --min-np 1 --max-np 3 --host-discovery-script /etc/mpi/discover_hosts.sh \\
        python pytorch_mnist_elastic.py

Two things make it survive. All results of the training are in the state, which is committed after every step: the
remaining ranks continue from there. And nothing is reduced or broadcast before `train`: a rank that joins later would
wait there for ranks that have passed that line long ago.
"""

import argparse
import os
import socket
import time

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy


def pictures(step: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The pictures of one step and the digits they show: the same on every rank."""
    patterns = torch.rand(10, 784, generator=torch.Generator().manual_seed(1))
    chance = torch.Generator().manual_seed(1000 + step)
    digits = torch.randint(10, (count,), generator=chance)
    return patterns[digits] + 0.5 * torch.randn(count, 784, generator=chance), digits


@hvd.elastic.run
def train(state: hvd.elastic.TorchState, steps: int, batch: int, pause: float) -> None:
    """Runs again from the last commit, on every rank, whenever ranks have come or gone."""
    place = f"on {socket.gethostname()} pid {os.getpid()}"
    print(f"rank {hvd.rank()} of {hvd.size()} {place}: from step {state.step}", flush=True)
    while state.step < steps:
        seen, digits = pictures(state.step, batch)
        mine = slice(hvd.rank(), None, hvd.size())
        state.optimizer.zero_grad()
        loss = cross_entropy(state.model(seen[mine]), digits[mine])
        loss.backward()
        state.optimizer.step()
        state.step += 1
        if hvd.rank() == 0:
            print(f"step {state.step} loss {loss.item():.6f} size {hvd.size()}", flush=True)
        time.sleep(pause)
        state.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train with torch while workers come and go.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=60, help="pictures a step, of all ranks together")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds after each step: time to watch the job grow")
    options = parser.parse_args()

    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.02), named_parameters=model.named_parameters()
    )
    train(hvd.elastic.TorchState(model, optimizer, step=0), options.steps, options.batch, options.pause)
    if hvd.rank() == 0:
        print(f"trained {options.steps} steps, at the end with {hvd.size()}", flush=True)


if __name__ == "__main__":
    main()
