"""Train a small network on MNIST-shaped pictures with torch alone, on CPUs: `mpirun -n 4 rank-env python ddp.py`.

The pictures are made here: ten patterns, one a digit, under noise. Every step takes the same pictures whatever the
number of ranks, each rank its share of them, so any number of ranks gives the same losses.
"""

import argparse
import os
import socket

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def pictures(step: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The pictures of one step and the digits they show: the same on every rank."""
    patterns = torch.rand(10, 784, generator=torch.Generator().manual_seed(1))
    chance = torch.Generator().manual_seed(1000 + step)
    digits = torch.randint(10, (count,), generator=chance)
    return patterns[digits] + 0.5 * torch.randn(count, 784, generator=chance), digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64, help="pictures a step, of all ranks together")
    options = parser.parse_args()

    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    print(f"rank {rank} of {size} on {socket.gethostname()} local rank {os.environ['LOCAL_RANK']}", flush=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

    for step in range(1, options.steps + 1):
        seen, digits = pictures(step, options.batch)
        mine = slice(rank, None, size)
        optimizer.zero_grad()
        loss = cross_entropy(model(seen[mine]), digits[mine])
        loss.backward()
        optimizer.step()
        if step == 1 or step % 10 == 0:
            mean = loss.detach().clone()
            distributed.all_reduce(mean)
            if rank == 0:
                print(f"step {step} loss {mean.item() / size:.6f} size {size}", flush=True)
    distributed.barrier()  # a rank that leaves early takes the others with it
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
