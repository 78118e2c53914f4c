"""Train a small network with torch and write checkpoints: `mpirun -n 2 rank-env python train.py`.

A run that finds the checkpoint goes on from there, so a job that is started again loses at most `--every` steps. The
same steps see the same data, so the result does not depend on where a run was interrupted.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import distributed
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20, help="steps from one checkpoint to the next")
    parser.add_argument("--file", default="checkpoint.pt", help="in a directory that all workers share")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step")
    options = parser.parse_args()

    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    first = load(options.file, network, optimizer)
    if rank == 0:
        print(f"attempt {os.environ.get('MPIBOOT_ATTEMPT', '1')} begins after step {first}", flush=True)
    model = DistributedDataParallel(network)

    for step in range(first + 1, options.steps + 1):
        chance = torch.Generator().manual_seed(1000 * step + rank)
        seen = torch.randn(16, 32, generator=chance)
        optimizer.zero_grad()
        loss = mse_loss(model(seen), seen.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        if rank == 0 and (step % options.every == 0 or step == options.steps):
            save(options.file, step, network, optimizer)
            print(f"checkpoint after step {step}", flush=True)
        time.sleep(options.pause)
    if rank == 0:
        weights = sum(parameter.detach().double().sum().item() for parameter in network.parameters())
        print(f"result {weights:.12f} size {size}", flush=True)
    distributed.destroy_process_group()


def load(file: str, network: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The step after which the checkpoint was written; 0 without one."""
    if not Path(file).exists():
        return 0
    found = torch.load(file, weights_only=True)
    network.load_state_dict(found["network"])
    optimizer.load_state_dict(found["optimizer"])
    return int(found["step"])


def save(file: str, step: int, network: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write to another name, then rename: if this rank dies meanwhile, the last checkpoint is whole."""
    torch.save({"step": step, "network": network.state_dict(), "optimizer": optimizer.state_dict()}, f"{file}.new")
    Path(f"{file}.new").replace(file)


if __name__ == "__main__":
    main()
