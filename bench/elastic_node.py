"""Elastic Horovod on the node: how soon training continues after workers are added, killed, evicted or cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import horovod
from bench._cluster import client, tested
from bench._elastic import SILENT, TENSORFLOW
from bench._elastic_cases import Samples, briefly, cut_while_joining, losses, network, sizes, watched
from bench._elastic_node import training
from bench.elastic import TENSORFLOW_IMAGE, TIMES, TORCH_IMAGE

if TYPE_CHECKING:
    from bench.harness import Row


def versions() -> dict[str, str]:
    return {**tested(), **horovod.versions()}


def measure() -> list[Row]:
    """Measure every case with Torch, and the losses of workers once with TensorFlow."""
    api = client(TORCH_IMAGE, TENSORFLOW_IMAGE)
    samples = Samples()
    for _ in range(TIMES):
        with training(api, TORCH_IMAGE, 2) as job:
            samples.add(cut_while_joining(job))
        with training(api, TORCH_IMAGE, 2) as job:
            samples.add(sizes(job))
        with training(api, TORCH_IMAGE, 2) as job:
            samples.add(losses(job, "evicted"))
        with training(api, TORCH_IMAGE, 3) as job:
            samples.add(network(job))
            job.leave_no_room()
            samples.add({"a worker without a place: training stood still": watched(job, SILENT + 2)})
    with training(api, TENSORFLOW_IMAGE, 3, TENSORFLOW) as job:
        samples.add(briefly(job), "TensorFlow: ")
    return samples.rows()
