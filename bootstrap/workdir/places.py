"""Where the archives are in a launcher's container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.bootstrap import files
from mpiboot.bootstrap.run import rundir
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping


def incoming(environ: Mapping[str, str]) -> str:
    """The archive of the caller's directory. The launcher removes it when every host has its contents."""
    return f"{_own(environ)}/workdir.tar.gz"


def results(environ: Mapping[str, str]) -> str:
    """The directory with archives of what the hosts have, one a host, when all of them are there."""
    return f"{_own(environ)}/results"


def _own(environ: Mapping[str, str]) -> str:
    directory = rundir.fixed(environ)
    if not directory or not files.own_directory(directory):
        raise UserError(f"no directory for the archive: {directory or 'set MPIBOOT_RUN_DIR'}")
    return directory
