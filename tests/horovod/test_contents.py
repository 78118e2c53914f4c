"""What is in the Horovod images, asked in containers of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.containers import HARDENED, LOOK_FOR_CAPABILITIES, ONLY_THE_WITNESS

if TYPE_CHECKING:
    from collections.abc import Callable

    Tag = Callable[[str], str]
    Inside = Callable[..., tuple[int, str]]

FRAMEWORKS = ("torch", "tensorflow")
EXAMPLES = {
    "torch": ["elastic/pytorch_mnist_elastic.py", "torch/mnist.py"],
    "tensorflow": ["elastic/tensorflow2_mnist_elastic.py", "fashion.py", "tensorflow/mnist.py"],
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_both_controllers_and_the_framework_are_built_in(image: Tag, inside: Inside, framework: str) -> None:
    code, said = inside(image(f"horovod-{framework}"), "horovodrun", "--check-build", **HARDENED)
    assert code == 0, said
    built = {line.strip().removeprefix("[X] ") for line in said.splitlines() if "[X]" in line}
    # It counts torch as built wherever horovod.torch is, compiled or not.
    assert built - {"PyTorch"} == {"torch": {"MPI", "Gloo"}, "tensorflow": {"MPI", "Gloo", "TensorFlow"}}[framework]
    assert framework != "torch" or "PyTorch" in built
    assert said.count("[X] MPI") == said.count("[X] Gloo") == 2  # as a controller, and for operations


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_any_user_reduces_with_a_read_only_root(image: Tag, inside: Inside, framework: str) -> None:
    module = {"torch": "torch", "tensorflow": "tensorflow"}[framework]
    one = f"import horovod.{module} as hvd, {module} as f; hvd.init(); print('sum', int(hvd.allreduce("
    program = f"{one}f.ones([1]) if hasattr(f, 'ones') else 1, op=hvd.Sum)[0]))"
    code, said = inside(image(f"horovod-{framework}"), "mpirun", "-n", "2", "python", "-c", program, **HARDENED)
    assert code == 0, said
    assert said.count("sum 2") == 2


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_that_a_job_must_bring_or_a_build_needs_is_left(image: Tag, inside: Inside, framework: str) -> None:
    look = (
        "ls -d /etc/ssh/ssh_host_* /root/.ssh/* /root/.cache/pip/* /home/*/.ssh/* /wheel /examples.mine"
        " /var/log/dpkg.log /usr/bin/gcc* /usr/bin/cmake 2>/dev/null;"
        " find /usr/lib/python3/dist-packages/torch -name '*.pyi' 2>/dev/null;"
        " dpkg --audit; true"
    )
    assert inside(image(f"horovod-{framework}"), "sh", "-c", look, user="0") == (0, "")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_file_carries_capabilities(image: Tag, inside: Inside, framework: str) -> None:
    said = inside(image(f"horovod-{framework}"), "/usr/bin/python3", "-c", LOOK_FOR_CAPABILITIES, user="0")
    assert said == (0, ONLY_THE_WITNESS)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_examples_are_under_the_paths_that_manifests_name(image: Tag, inside: Inside, framework: str) -> None:
    code, said = inside(image(f"horovod-{framework}"), "find", "/examples", "-type", "f", "-printf", "%P ")
    assert (code, sorted(said.split())) == (0, EXAMPLES[framework])
    assert inside(image(f"horovod-{framework}"), "pwd") == (0, "/examples\n")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_module_has_its_compiled_code_beside_it(image: Tag, inside: Inside, framework: str) -> None:
    # Without it every rank of every job compiles each module that it imports.
    module = {"torch": "torch", "tensorflow": "tensorflow"}[framework]
    look = (
        "import sys, os, horovod, importlib.util as u;"
        f"places = [os.path.dirname(u.find_spec(m).origin) for m in ('horovod', '{module}')];"
        "files = [os.path.join(d, f) for p in places for d, _, fs in os.walk(p) for f in fs if f.endswith('.py')];"
        "bare = [f for f in files if not os.path.exists(u.cache_from_source(f))];"
        "print(len(files) > 100, bare)"
    )
    assert inside(image(f"horovod-{framework}"), "python", "-c", look) == (0, "True []\n")
