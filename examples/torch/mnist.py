"""Train a small network on MNIST-shaped pictures with torch and Horovod: `mpirun -n 2 python mnist.py`.

The pictures are made here: ten patterns, one a digit, under noise. Every step takes the same pictures whatever the
number of ranks, each rank its share of them, so any number of ranks gives the same losses.
"""

import argparse

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy


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

    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.02), named_parameters=model.named_parameters()
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for step in range(1, options.steps + 1):
        seen, digits = pictures(step, options.batch)
        mine = slice(hvd.rank(), None, hvd.size())
        optimizer.zero_grad()
        loss = cross_entropy(model(seen[mine]), digits[mine])
        loss.backward()
        optimizer.step()
        if step == 1 or step % 10 == 0:
            mean = hvd.allreduce(loss.detach(), name="loss").item()
            if hvd.rank() == 0:
                print(f"step {step} loss {mean:.6f} size {hvd.size()}", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
