"""`mpiboot workdir`, not for users: `mpiboot run` starts it in the launcher, and the launcher on the workers."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mpiboot.bootstrap.workdir import archive, places
from mpiboot.job.errors import UserError

USAGE = "usage: mpiboot workdir store | unpack DIRECTORY | pack DIRECTORY PATTERN... | give"


def main(argv: list[str]) -> int:
    """The exit code: 0; 74 if the data could not be moved, with a line on stderr that says why."""
    try:
        match argv:
            case ["store"]:
                archive.store(lambda size: os.read(0, size), places.incoming(os.environ))
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
