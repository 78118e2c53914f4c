"""Points about MPI, Python and GPUs: what the ranks need."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mpiboot.images.check.outcome import Answer, fault, not_applicable, not_checked, ok
from mpiboot.images.check.programs import missing_libraries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.images.check.programs import Program
    from mpiboot.images.check.subject import Result, Subject


def mpirun(subject: Subject) -> Answer:
    if subject.mpi:
        return ok(str(subject.mpi))
    found = subject.run("command -v mpirun && mpirun --version")
    return fault(f"mpirun belongs to an unknown MPI: {found.one_line[:120]}" if found.out else "no mpirun in PATH")


def libraries(subject: Subject) -> Answer:
    if subject.mpi is None:
        return not_checked("the image has no mpirun")
    codes = {program.code for program in subject.programs if program.code}
    # -i: sshd starts a program without the image's ENV. One call for each shows whether the loader printed anything.
    outputs = {code: subject.run(f"env -i /usr/bin/ldd {shlex.quote(code)} 2>&1") for code in codes}
    return judge_libraries(subject.programs, outputs)


def judge_libraries(programs: Sequence[Program], outputs: Mapping[str, Result]) -> Answer:
    """The answer that follows from ldd's output for each file of machine code. No output does not mean success."""
    missing = {library for result in outputs.values() for library in missing_libraries(result.out)}
    if missing:
        return fault(f"not found: {', '.join(sorted(missing))}")
    silent = {code for code, result in outputs.items() if result.code != 0 or not result.out}
    unknown = [program.name for program in programs if program.code is None or program.code in silent]
    if unknown:
        return not_checked(f"the libraries of {' and '.join(unknown)} are not known")
    return ok(f"all found, of {', '.join(program.code for program in programs if program.code)}")


def python(subject: Subject) -> Answer:
    missing = [name for name in ("python", "python3") if not subject.as_root.exists(name)]
    if missing:
        return fault(f"no {' and no '.join(missing)} in PATH")
    return ok(subject.run("python3 --version").one_line)


def gpu_variables(subject: Subject) -> Answer:
    # Only directories of the loader and of wheels: a search of the whole image takes seconds.
    places = "/usr/local/cuda* /usr/lib /usr/local/lib /opt"
    search = f"find {places} -xdev ( -name 'libcudart.so*' -o -name 'libnccl.so*' ) -print 2>/dev/null | head -n 1"
    library = subject.run(search.replace("( ", "\\( ").replace(" )", " \\)")).out
    if not library:
        return not_applicable("the image has no CUDA library")
    variables = subject.image.environment
    capabilities = variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    if "NVIDIA_VISIBLE_DEVICES" not in variables:
        return fault(f"{library}, and no NVIDIA_VISIBLE_DEVICES")
    if not {"compute", "all"} & set(capabilities.split(",")):
        return fault(f"{library}, and NVIDIA_DRIVER_CAPABILITIES={capabilities}")
    return ok(f"NVIDIA_DRIVER_CAPABILITIES={capabilities}")
