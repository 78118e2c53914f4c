"""Elastic Horovod on Docker: how soon training continues after workers are added, removed, killed or cut off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench._elastic import TENSORFLOW
from bench._elastic_cases import Samples, briefly, cut_while_joining, losses, network, sizes
from bench._elastic_docker import training
from bench._engine import engine
from bench.horovod import versions  # noqa: F401 (bench/run.py calls it)

if TYPE_CHECKING:
    from bench.harness import Row

TORCH_IMAGE = os.environ.get("BENCH_HOROVOD", "mpiboot/horovod-torch:latest")
TENSORFLOW_IMAGE = "mpiboot/horovod-tensorflow:latest"
TIMES = int(os.environ.get("BENCH_TIMES", "2"))


def measure() -> list[Row]:
    """Measure every case with Torch, and the losses of workers once with TensorFlow."""
    with engine(TORCH_IMAGE, TENSORFLOW_IMAGE):
        pass
    samples = Samples()
    for number in range(TIMES):
        with training(TORCH_IMAGE, 2, f"{number}-joining") as job:
            samples.add(cut_while_joining(job))
        with training(TORCH_IMAGE, 2, f"{number}-sizes") as job:
            samples.add(sizes(job))
        with training(TORCH_IMAGE, 2, f"{number}-losses") as job:
            samples.add(losses(job, "its container removed"))
        with training(TORCH_IMAGE, 3, f"{number}-network") as job:
            samples.add(network(job))
    with training(TENSORFLOW_IMAGE, 3, "tensorflow", TENSORFLOW) as job:
        samples.add(briefly(job), "TensorFlow: ")
    return samples.rows()
