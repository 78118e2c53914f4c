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
    if is_of_containers(sys.argv[1:]):
        from mpiboot.bootstrap.__main__ import main as bootstrap

        return bootstrap(sys.argv[1:])
    from mpiboot.cli.main import main as cli

    return cli(sys.argv[1:])


def is_of_containers(words: list[str]) -> bool:
    """Whether it is a command of containers. `mpiboot wait JOB` is none: it names a job, or an option for jobs."""
    if not words or words[0] not in IN_CONTAINERS:
        return False
    second = words[1].partition("=")[0] if len(words) > 1 else "-"
    return words[0] != "wait" or (second.startswith("-") and second not in OF_JOBS)


if __name__ == "__main__":
    sys.exit(main())
