"""`mpiboot workdir`, not for users: `mpiboot run` starts it in the launcher, and the launcher on the workers."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from mpiboot.bootstrap import files
from mpiboot.bootstrap.run import rundir
from mpiboot.bootstrap.workdir import archive
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = "usage: mpiboot workdir store | unpack DIRECTORY | pack DIRECTORY PATTERN... | give"


def main(argv: list[str]) -> int:
    """The exit code: 0; 74 if the data could not be moved, with a line on stderr that says why."""
    try:
        match argv:
            case ["store"]:
                archive.store(lambda size: os.read(0, size), place(os.environ))
            case ["unpack", directory]:
                archive.unpack(sys.stdin.buffer, directory)
            case ["pack", directory, *patterns]:
                from mpiboot.bootstrap.workdir import results

                results.pack(directory, patterns, sys.stdout.buffer)
            case ["give"]:
                from mpiboot.bootstrap.workdir import results

                with suppress(OSError):  # `mpiboot run` has gone, or starts this again
                    results.give(os.environ, sys.stdout.buffer, lambda size: os.read(0, size))
            case _:
                raise UserError(USAGE)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def place(environ: Mapping[str, str]) -> str:
    """The archive in a launcher's container. The launcher removes it when every host has its contents."""
    return f"{_own(environ)}/workdir.tar.gz"


def results(environ: Mapping[str, str]) -> str:
    """The directory with archives of what the hosts have, one a host, when all of them are there."""
    return f"{_own(environ)}/results"


def _own(environ: Mapping[str, str]) -> str:
    directory = rundir.fixed(environ)
    if not directory or not files.own_directory(directory):
        raise UserError(f"no directory for the archive: {directory or 'set MPIBOOT_RUN_DIR'}")
    return directory
