"""The command line of an mpirun: which mpirun it is, which programs it starts, and whether a host can run them."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.bootstrap.process import spawn
from mpiboot.job import mpi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def path_of(command: Sequence[str], path: str) -> str:
    """The mpirun that the command calls, or that its scripts would find in PATH; empty if there is none."""
    starters = mpi.starters()
    if command and command[0].rpartition("/")[2] in starters:
        return command[0]
    for name in starters:
        try:
            return spawn.find(name, path)
        except (spawn.NotFoundError, spawn.NotExecutableError):
            continue
    return ""


# Options of Open MPI, MPICH and Intel MPI by the number of words that follow them. After an unknown option the next
# word may be its value or the program, so then the programs are unknown.
_ALONE = frozenset({
    "--allow-run-as-root", "-allow-run-as-root", "--oversubscribe", "-oversubscribe", "--nooversubscribe",
    "-nooversubscribe", "--nolocal", "-nolocal", "--tag-output", "-tag-output", "--timestamp-output",
    "-timestamp-output", "--report-bindings", "-report-bindings", "--display-map", "-display-map",
    "--display-allocation", "-display-allocation", "--bynode", "-bynode", "--byslot", "-byslot", "--bind-to-core",
    "-bind-to-core", "--bind-to-none", "-bind-to-none", "--verbose", "-verbose", "-v", "-q", "--quiet", "-quiet", "-l",
    "-prepend-rank", "-genvall", "-genvnone", "-envall", "-envnone", "-disable-auto-cleanup", "-print-all-exitcodes",
})  # fmt: skip
_DIRECTORY = frozenset({"-wdir", "--wdir", "-wd", "--wd"})
_WITH_ONE = {*_DIRECTORY, *mpi.COUNT_OPTIONS, *mpi.HOST_OPTIONS, *mpi.HOSTFILE_OPTIONS} | {
    "-N", "-npernode", "--npernode", "-npersocket", "--npersocket", "-ppn", "-perhost", "-x", "--bind-to", "-bind-to",
    "--map-by", "-map-by", "--rank-by", "-rank-by", "--display", "--output", "--timeout", "-timeout", "--prefix",
    "-prefix", "--tune", "-tune", "-genvlist", "-envlist", "-iface", "-launcher", "-bootstrap", "-outfile-pattern",
    "-errfile-pattern", "-rmk", "-rankmap", "-membind",
}  # fmt: skip
_WITH_TWO = frozenset({
    "-mca", "--mca", "-gmca", "--gmca", "--prtemca", "--pmixmca", "-genv", "-env",
})  # fmt: skip

# The mpirun of Open MPI 5 keeps a line back until it has an end: a progress bar and a question would never be shown.
AT_ONCE = "MPIBOOT_OUTPUT_AT_ONCE"  # as in job/quick.py, which process 1 does not import
# Its release 5.0.11 never closes the stdin of rank 0 (openpmix pull request 4024). Where all ranks are on this machine,
# rank 0 can read the launcher's own stdin.
STDIN_HERE = "MPIBOOT_STDIN_HERE"
_FROM_HERE = 'in=$1; shift; if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec "$@" <"$in"; fi; exec "$@"'


def with_streams(
    argv: Sequence[str], environ: Mapping[str, str], installed: mpi.Installed | None, pid: int
) -> list[str]:
    """The command with what an Open MPI 5 needs for the streams that these variables ask for; `pid` is the launcher."""
    words = list(argv)
    is_open_mpi_5 = installed is not None and installed.runtime is mpi.DEFAULT and installed.major >= 5
    if not is_open_mpi_5 or words[:2] != ["mpirun", "-n"]:
        return words
    program = next((at for at in range(3, len(words)) if words[at] not in _ALONE), len(words))
    if environ.get(STDIN_HERE) and program < len(words) and not words[program].startswith("-") and ":" not in words:
        words[program:program] = ["sh", "-c", _FROM_HERE, "mpiboot", f"/proc/{pid}/fd/0"]
        words[1:1] = ["--stdin", "none"]
    if environ.get(AT_ONCE) and program == 3:
        words[1:1] = ["--output", ":raw"]
    return words


_KINDS = ("does not exist", "is a directory", "is not executable")
# Exit codes of the check: one for each kind of each program. Shells use 126 and more, ssh 255.
_FIRST_CODE, _MOST = 64, 20

_CHECK = """
program() {
    case $2 in
    */*) cd "$1" 2>/dev/null || case $2 in /*) ;; *) return 0 ;; esac ;;
    *)
        IFS=:
        for directory in $PATH; do [ -f "$directory/$2" ] && [ -x "$directory/$2" ] && return 0; done
        cd "$1" 2>/dev/null && [ -e "$2" ] && return 0
        return 1
        ;;
    esac
    [ -e "$2" ] || return 1
    if [ -d "$2" ]; then return 2; fi
    [ -x "$2" ] || return 3
}
"""


class Program(NamedTuple):
    """A program as the command line names it, and its working directory."""

    name: str
    directory: str


def programs_of(argv: Sequence[str], directory: str) -> tuple[Program, ...]:
    """The programs of the command line: several in `mpirun A : B`, none if they are unknown."""
    programs: list[Program] = []
    words = list(argv[1:])
    while words:
        own = directory
        while words and words[0].startswith("-"):
            word = words.pop(0)
            if word.startswith("--") and "=" in word:
                continue
            count = 2 if word in _WITH_TWO else 1 if word in _WITH_ONE else 0 if word in _ALONE else -1
            if count < 0 or len(words) <= count:
                return ()
            if word in _DIRECTORY:
                own = words[0] if words[0].startswith("/") else f"{directory}/{words[0]}"
            del words[:count]
        if not words:
            return ()
        programs.append(Program(words[0], own))
        words = words[words.index(":") + 1 :] if ":" in words else []
    return tuple(dict.fromkeys(programs))[:_MOST]


def check_script(programs: Sequence[Program], path: str) -> str:
    """A shell script that exits with 0 if its host can run all these programs; `failed_check` reads its exit code."""
    # The host's own PATH counts too: not every mpirun forwards the launcher's PATH.
    lines = [_CHECK, f"PATH=$PATH:{quote(path)}"]
    for number, (name, directory) in enumerate(programs):
        first = _FIRST_CODE + number * len(_KINDS)
        lines.append(f"(program {quote(directory)} {quote(name)}); kind=$?")
        lines.append(f'[ "$kind" = 0 ] || exit $(({first} + kind - 1))')
    return "\n".join([*lines, "exit 0", ""])


def failed_check(programs: Sequence[Program], code: int) -> tuple[Program, str] | None:
    """The program that the host cannot run, and why: `does not exist`, for example. None: it can run all."""
    number, kind = divmod(code - _FIRST_CODE, len(_KINDS))
    return (programs[number], _KINDS[kind]) if 0 <= number < len(programs) else None
