"""`kubectl mpi`: the commands of mpiboot as a plugin of kubectl, which finds the program kubectl-mpi in PATH.

The only difference: without --engine a command is for the cluster, as everything in kubectl is.
"""

from __future__ import annotations

import sys

from mpiboot.cli import main as cli

PROGRAM = "kubectl mpi"
WITH_ENGINE = ("run", "ps", "status", "logs", "events", "wait", "shell", "scale", "delete")


def main() -> int:
    """The exit code of `kubectl mpi ...`."""
    return cli.main(sys.argv[1:], PROGRAM, {name: {"engine": "kubernetes"} for name in WITH_ENGINE})
