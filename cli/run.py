"""`mpiboot run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mpiboot.engines.request import Program

COMMAND = "mpiboot.command"


class WithCommand(click.Command):
    """What follows `--` is the program, word for word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            position = args.index("--")
            args, ctx.meta[COMMAND] = args[:position], args[position + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PROGRAM [ARGS]...]"]


@click.command(cls=WithCommand)
@click.option("-f", "--file", "manifest", metavar="FILE", help="Manifest of an MPIJob; - reads stdin.")
@click.option("-n", "--processes", type=int, metavar="N",
              help="Number of ranks.  [default: one for each slot]")  # fmt: skip
@click.option("--workers", type=int, default=1, show_default=True, metavar="N", help="Number of workers.")
@click.option("--slots", type=int, metavar="N", help="Ranks that a worker takes.  [default: so that all ranks fit]")
@click.option("-e", "--env", multiple=True, metavar="NAME=VALUE", help="Set a variable for all ranks; may be repeated.")
@click.option("--mpi", type=click.Choice(["OpenMPI", "Intel", "MPICH"], case_sensitive=False),
              help="MPI runtime of the image.  [default: as its name says, else OpenMPI]")  # fmt: skip
@click.option("--ssh-dir", metavar="PATH", help="Where an image that is not ours keeps the SSH keys of its user.  "
              "[default: /root/.ssh]")  # fmt: skip
@click.option("--name", metavar="NAME", help="Name of the job.  [default: the manifest's, or one after the program]")
@click.option("--engine", type=click.Choice(["docker", "local", "kubernetes"]),
              help="Where to run.  [default: docker if an engine answers, else local]")  # fmt: skip
@click.option("--allow-host-path", is_flag=True, help="Let a manifest's hostPath volumes see this machine's files.")
@click.option("--timeline", metavar="FILE.svg", help="Draw what happened when.")
@click.option("-v", "--verbose", is_flag=True, help="Print what happened when, and all that sshd says.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what the launcher prints.")
@click.argument("image", required=False)
@click.pass_context
def run(
    ctx: click.Context, manifest: str | None, processes: int | None, workers: int, slots: int | None,
    env: tuple[str, ...], mpi: str | None, ssh_dir: str | None, name: str | None, engine: str | None,
    allow_host_path: bool, timeline: str | None, verbose: bool, quiet: bool, image: str | None,
) -> int:  # fmt: skip
    """Run an MPI job on this machine and end as its launcher ends.

    Either a manifest (-f job.yaml), or a program in an image: mpiboot run -n 4 --workers 2 IMAGE -- ./program args.
    With --engine local the program is this machine's, and IMAGE may be left out.

    Exit codes: the launcher's own (128+N if signal N ended it); 2 the input is wrong; 124 out of time, or workers
    not ready in time; 126 and 127 the command cannot be run; 130 ended by Ctrl-C.
    """
    from mpiboot.engines.run import Wanted
    from mpiboot.engines.run import run as start

    words = ctx.meta.get(COMMAND)
    program = None
    if manifest is None:
        program = _program(image, words, processes, workers, slots, env, mpi, ssh_dir, name)
    elif image or words is not None or processes or env or slots:
        raise click.UsageError("-f brings the whole job: leave out IMAGE, the program, -n, --slots and -e")
    if engine == "kubernetes":
        from mpiboot.cli import cluster

        return cluster.run(cluster.manifest_of(manifest, name, program), quiet=quiet)
    return start(Wanted(manifest, name, program, engine, timeline, verbose, quiet, allow_host_path))


def _program(
    image: str | None, words: list[str] | None, processes: int | None, workers: int, slots: int | None,
    env: tuple[str, ...], mpi: str | None, ssh_dir: str | None, name: str | None,
) -> Program:  # fmt: skip
    from mpiboot.engines.request import Program, runtime_named

    if not words:
        raise click.UsageError("say what to run: -f FILE, or IMAGE -- PROGRAM [ARGS]")
    wrong = [word for word in env if "=" not in word]
    if wrong:
        raise click.UsageError(f"-e takes NAME=VALUE, not {wrong[0]!r}")
    pairs = dict(word.split("=", 1) for word in env)
    return Program(image or "", words, processes, workers, name, slots, runtime_named(mpi), pairs, ssh_dir)
