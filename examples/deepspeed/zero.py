"""Train a small network on MNIST-shaped pictures with DeepSpeed, stage 1 of ZeRO, on CPUs: `deepspeed zero.py`.

The pictures are made here: ten patterns, one a digit, under noise. Every step takes the same pictures whatever the
number of ranks, each rank its share of them.
"""

import argparse
import os
import socket

import deepspeed
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
    parser.add_argument("--local_rank", type=int, help="what deepspeed passes to every program")
    options = parser.parse_args()

    deepspeed.init_distributed("gloo")
    rank, size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
    place = f"on {socket.gethostname()} local rank {os.environ['LOCAL_RANK']} word {os.environ.get('WORD', '')}"
    print(f"rank {rank} of {size} {place}", flush=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    settings = {
        "train_micro_batch_size_per_gpu": options.batch // size,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    }
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02)
    model, *_ = deepspeed.initialize(model=network, optimizer=optimizer, config=settings)

    for step in range(1, options.steps + 1):
        seen, digits = pictures(step, options.batch)
        mine = slice(rank, None, size)
        loss = cross_entropy(model(seen[mine]), digits[mine])
        model.backward(loss)
        model.step()
        if step == 1 or step % 10 == 0:
            mean = loss.detach().clone()
            deepspeed.comm.all_reduce(mean)
            if rank == 0:
                print(f"step {step} loss {mean.item() / size:.6f} size {size}", flush=True)


if __name__ == "__main__":
    main()
