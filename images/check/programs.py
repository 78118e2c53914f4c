"""Follows a program's name through links and shell scripts to the file of machine code that runs. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ELF = b"\x7fELF"
# Intel's mpirun is a script that starts another program by name, and in a wheel, stubs in PATH start both.
MAX_PROGRAMS = 5

SHELL_SCRIPT = re.compile(r"#!\s*\S*/(env\s+)?(ba|da|a|k)?sh\b")
# A line that passes all arguments to a program with a name of an MPI's. The last such line is the usual case.
STARTS = re.compile(
    r"""^[^#\n]*?(?<![^\s"'])((?:/[\w./+-]*/)?(?:mpi|hydra_|prte|orte)[\w.+-]*)["']?\s[^\n]*?"?\$\{?[@*]\}?""",
    re.MULTILINE,
)
# A loader's message about a missing library: glibc's, musl's, and glibc's about a library that is too old.
MISSING = re.compile(r"(\S+) => not found|shared library (\S+?):|version `(\S+)' not found")


@dataclass(frozen=True)
class Program:
    """A program with its name. `files` run in this order, and `code` is the last of them.

    `code` is None if the last file is no machine code, and its text does not show what it starts.
    """

    name: str
    files: tuple[str, ...]
    code: str | None


def follow(name: str, locate: Callable[[str], str], read: Callable[[str], bytes]) -> Program:
    """`locate` returns the file of a name or a path, or an empty text; `read` returns the beginning of a file."""
    files: list[str] = []
    called: str | None = name
    while called and len(files) < MAX_PROGRAMS:
        path = locate(called)
        if not path:
            break
        files.append(path)
        beginning = read(path)
        if beginning.startswith(ELF):
            return Program(name, tuple(files), path)
        called = started_by(beginning.decode(errors="replace"))
    return Program(name, tuple(files), None)


def started_by(script: str) -> str | None:
    """The program to which a shell script passes its arguments: a path or a name. None if its text does not show it."""
    if not SHELL_SCRIPT.match(script) or "LD_LIBRARY_PATH" in script:
        return None  # with its own paths it finds other libraries than ldd finds
    started = STARTS.findall(script)
    return str(started[-1]) if started else None


def missing_libraries(ldd_output: str) -> set[str]:
    """The libraries that ldd does not find."""
    return {next(filter(None, match.groups())) for match in MISSING.finditer(ldd_output)}
