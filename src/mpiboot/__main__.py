"""The command `mpiboot`. As process 1 of a container it must start at once, so those commands skip click."""

import sys

IN_CONTAINERS = frozenset({"launch", "worker", "wait", "hosts"})
# Options of `mpiboot wait JOB`, which is no command of containers.
OF_JOBS = frozenset({"--for", "--timeout", "--engine", "-n", "--namespace", "--context", "-o", "--output"})


def main() -> int:
    """The exit code of the command in `sys.argv`."""
    if sys.argv[1:2] == ["workdir"]:
        from mpiboot.bootstrap.workdir.program import main as workdir

        return workdir(sys.argv[2:])
    if len(sys.argv) > 1 and sys.argv[1] in IN_CONTAINERS and not _waits_for_a_job(sys.argv[1:]):
        from mpiboot.bootstrap.__main__ import main as bootstrap

        return bootstrap(sys.argv[1:])
    from mpiboot.cli.main import main as cli

    return cli(sys.argv[1:])


def _waits_for_a_job(words: list[str]) -> bool:
    """Whether it is `mpiboot wait JOB`: it names a job, or begins with an option that the other `wait` has not."""
    if words[0] != "wait" or len(words) < 2:
        return False
    option = words[1].partition("=")[0]
    return not option.startswith("-") or option in OF_JOBS


if __name__ == "__main__":
    sys.exit(main())
