"""Run MPI programs on many machines. The parts live in the folders at the top of the repository.

From Python: `mpiboot.run("./a.out", "mpiboot/openmpi", n=4, workers=2)`; see docs/how-to/python.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiboot.engines.python_api import JobError, JobTimeoutError, Result, run
    from mpiboot.job.errors import UserError

__version__ = "0.1.0"
__all__ = ["JobError", "JobTimeoutError", "Result", "UserError", "__version__", "run"]


_FROM = {"UserError": "mpiboot.job.errors"}


def __getattr__(name: str) -> object:
    """Import what scripts use when they use it: this file is read at the start of process 1 in containers."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FROM.get(name, "mpiboot.engines.python_api")), name)
