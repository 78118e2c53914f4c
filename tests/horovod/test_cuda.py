"""The Horovod image for NVIDIA's GPUs, where it was built, on machines without a GPU: it holds all, and starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.containers import HARDENED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.horovod.conftest import Trained

    Inside = Callable[..., tuple[int, str]]

pytestmark = [pytest.mark.timeout(1200)]
WITHOUT_A_GPU = """
import torch, horovod.torch as hvd
hvd.init()
total = int(hvd.allreduce(torch.ones([1]), op=hvd.Sum)[0])
print("sum", total, "nccl", bool(hvd.nccl_built()), "gpu", torch.cuda.is_available(), "cuda", torch.version.cuda[:3])
"""
# As they come to be loaded, after torch; cuDNN's are plugins, which nothing is linked to.
LOAD_ALL = """
import ctypes, glob, os, torch
packages = os.path.dirname(os.path.dirname(torch.__file__))
found = glob.glob(packages + "/torch/lib/*.so") + glob.glob(packages + "/nvidia/cudnn/lib/*.so.*")
print("libraries", len(found) > 10)
for library in found:
    try:
        ctypes.CDLL(library)
    except OSError as error:
        print(str(error).split(":")[0])
"""


@pytest.fixture
def cuda(optional_image: Callable[[str], str]) -> str:
    return optional_image("horovod-torch-cuda")


def test_nccl_is_built_in_beside_both_controllers(cuda: str, inside: Inside) -> None:
    code, said = inside(cuda, "horovodrun", "--check-build", **HARDENED)
    assert code == 0, said
    built = [line.strip().removeprefix("[X] ") for line in said.splitlines() if "[X]" in line]
    assert sorted(built) == ["Gloo", "Gloo", "MPI", "MPI", "NCCL", "PyTorch"]


def test_any_user_reduces_without_a_gpu_and_with_a_read_only_root(cuda: str, inside: Inside) -> None:
    code, said = inside(cuda, "mpirun", "-n", "2", "python", "-c", WITHOUT_A_GPU, **HARDENED)
    assert code == 0, said
    assert said.count("sum 2 nccl True gpu False cuda 13.") == 2, said


def test_two_workers_train_without_a_gpu(cuda: str, run: Callable[..., Trained]) -> None:
    both = run("-n", "2", "--workers", "2", cuda, "--", "python", "/examples/torch/mnist.py", "--steps", "20")
    assert set(both.sizes) == {2}
    assert both.losses[20] < both.losses[1]


def test_nothing_but_the_driver_is_missing_to_its_libraries(cuda: str, inside: Inside) -> None:
    code, said = inside(cuda, "python", "-c", LOAD_ALL)
    assert code == 0, said
    assert said.startswith("libraries True"), said
    assert set(said.splitlines()[1:]) <= {"libcuda.so.1"}


def test_nothing_that_only_building_needs_is_left(cuda: str, inside: Inside) -> None:
    look = (
        "find / -xdev \\( -path '*/bin/nvcc' -o -path '*/bin/gcc*' -o -name '*.a' -path '*/dist-packages/*' \\) -print;"
        " ls -d /wheel /whole /usr/local/cuda /root/.cache/pip/* 2>/dev/null; true"
    )
    assert inside(cuda, "sh", "-c", look, user="0") == (0, "")
