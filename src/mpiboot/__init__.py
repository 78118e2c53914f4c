"""Run MPI programs on many machines. The parts live in the folders at the top of the repository.

From Python: `mpiboot.run("./a.out", "mpiboot/openmpi", n=4, workers=2)`; see docs/how-to/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiboot.engines.python_api import JobError, JobTimeoutError, Result, run
    from mpiboot.job.errors import UserError

__version__ = "0.1.0"
__all__ = ["JobError", "JobTimeoutError", "Result", "UserError", "__version__", "run"]


def __getattr__(name: str) -> object:
    """Import what scripts use when they use it: this file is read at the start of process 1 in containers."""
    if name == "UserError":
        from mpiboot.job.errors import UserError

        return UserError
    if name in __all__:
        from mpiboot.engines import python_api

        return getattr(python_api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
