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
    if subject.runtime:
        return ok(str(subject.runtime))
    found = subject.run("command -v mpirun && mpirun --version")
    return fault(f"not known: {found.words[:120]}" if found.out else "no mpirun in PATH")


def libraries(subject: Subject) -> Answer:
    if subject.runtime is None:
        return not_checked("no mpirun whose libraries could be looked at")
    codes = {program.code for program in subject.programs if program.code}
    # -i: as sshd starts a program. One at a time, to see of each whether anything was said.
    said = {code: subject.run(f"env -i /usr/bin/ldd {shlex.quote(code)} 2>&1") for code in codes}
    return judge_libraries(subject.programs, said)


def judge_libraries(programs: Sequence[Program], said: Mapping[str, Result]) -> Answer:
    """What follows from the loader's words about each file of machine code. Silence is no good news."""
    missing = {library for result in said.values() for library in missing_libraries(result.out)}
    if missing:
        return fault(f"not found: {', '.join(sorted(missing))}")
    silent = {code for code, result in said.items() if result.code != 0 or not result.out}
    unknown = [program.name for program in programs if program.code is None or program.code in silent]
    if unknown:
        return not_checked(f"what {' and '.join(unknown)} needs could not be told")
    return ok(f"all found, of {', '.join(program.code for program in programs if program.code)}")


def python(subject: Subject) -> Answer:
    names = subject.run("for name in python python3; do command -v $name; done; true").out.splitlines()
    found = {name.rpartition("/")[2] for name in names}
    if found == {"python", "python3"}:
        return ok(subject.run("python3 --version").words)
    return fault(f"no {' and no '.join(sorted({'python', 'python3'} - found))} in PATH")


def gpu_variables(subject: Subject) -> Answer:
    # Only where libraries are looked for and where wheels put them: a walk over everything takes seconds.
    places = "/usr/local/cuda* /usr/lib /usr/local/lib /opt"
    search = f"find {places} -xdev ( -name 'libcudart.so*' -o -name 'libnccl.so*' ) -print 2>/dev/null | head -n 1"
    library = subject.run(search.replace("( ", "\\( ").replace(" )", " \\)")).out
    if not library:
        return not_applicable("no CUDA library in it")
    variables = subject.image.environment
    capabilities = variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    if "NVIDIA_VISIBLE_DEVICES" not in variables:
        return fault(f"{library}, and no NVIDIA_VISIBLE_DEVICES")
    if not {"compute", "all"} & set(capabilities.split(",")):
        return fault(f"{library}, and NVIDIA_DRIVER_CAPABILITIES={capabilities}")
    return ok(f"NVIDIA_DRIVER_CAPABILITIES={capabilities}")
