"""Which files run when a program is called by its name: links and shell scripts are followed to machine code. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ELF = b"\x7fELF"
# Intel's mpirun is a script that starts another program by name, and where it is a wheel's, stubs in PATH start both.
LONGEST_WAY = 5

SHELL_SCRIPT = re.compile(r"#!\s*\S*/(env\s+)?(ba|da|a|k)?sh\b")
# A line that hands all arguments on to a program which has a name of an MPI's. The last such line is the usual case.
STARTS = re.compile(
    r"""^[^#\n]*?(?<![^\s"'])((?:/[\w./+-]*/)?(?:mpi|hydra_|prte|orte)[\w.+-]*)["']?\s[^\n]*?"?\$\{?[@*]\}?""",
    re.MULTILINE,
)
# The words of a loader about a library that is not there: glibc's, musl's, and glibc's about one that is too old.
MISSING = re.compile(r"(\S+) => not found|shared library (\S+?):|version `(\S+)' not found")


@dataclass(frozen=True)
class Program:
    """A program by the name it is called by. `files` run in this order, and `code` is the last of them.

    None: that is no machine code, and what it starts cannot be told.
    """

    name: str
    files: tuple[str, ...]
    code: str | None


def follow(name: str, locate: Callable[[str], str], read: Callable[[str], bytes]) -> Program:
    """`locate` gives the file that a name or a path leads to, or nothing; `read` its beginning."""
    files: list[str] = []
    called: str | None = name
    while called and len(files) < LONGEST_WAY:
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
    """What a shell script hands its arguments to: a path or a name. None if that cannot be told from its text."""
    if not SHELL_SCRIPT.match(script) or "LD_LIBRARY_PATH" in script:
        return None  # with paths of its own it finds other libraries than a look from outside
    started = STARTS.findall(script)
    return str(started[-1]) if started else None


def missing_libraries(loaders_words: str) -> set[str]:
    """What ldd says is not there."""
    return {next(filter(None, match.groups())) for match in MISSING.finditer(loaders_words)}
