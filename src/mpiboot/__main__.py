"""The command `mpiboot`. As process 1 of a container it must start at once, so those commands skip click."""

import sys

IN_CONTAINERS = frozenset({"launch", "worker", "wait", "hosts"})


def main() -> int:
    """The exit code of the command in `sys.argv`."""
    if sys.argv[1:2] == ["workdir"]:
        from mpiboot.bootstrap.workdir.program import main as workdir

        return workdir(sys.argv[2:])
    if len(sys.argv) > 1 and sys.argv[1] in IN_CONTAINERS:
        from mpiboot.bootstrap.__main__ import main as bootstrap

        return bootstrap(sys.argv[1:])
    from mpiboot.cli.main import main as cli

    return cli(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
