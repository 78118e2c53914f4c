"""Points about MPI, Python and GPUs: what the ranks need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.check.outcome import Answer, fault, not_applicable, not_checked, ok

if TYPE_CHECKING:
    from mpiboot.images.check.subject import Subject


def mpirun(subject: Subject) -> Answer:
    if subject.runtime:
        return ok(str(subject.runtime))
    found = subject.run("command -v mpirun && mpirun --version")
    return fault(f"not known: {found.words[:120]}" if found.out else "no mpirun in PATH")


def libraries(subject: Subject) -> Answer:
    if subject.runtime is None:
        return not_checked("no mpirun whose libraries could be looked at")
    programs = " ".join(("mpirun", *subject.runtime.daemons))
    # -i: as sshd starts a program. Scripts are no dynamic executables, and ldd says so with an error.
    found = subject.run(f'for name in {programs}; do env -i /usr/bin/ldd "$(command -v $name)" 2>/dev/null; done; true')
    missing = sorted({line.split()[0] for line in found.out.splitlines() if line.endswith("not found")})
    return fault(f"not found: {', '.join(missing)}") if missing else ok("all found")


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
