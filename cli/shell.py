"""`mpiboot shell`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mpiboot.cli import job_options

if TYPE_CHECKING:
    from mpiboot.engines.choose import Where


COMMAND = "mpiboot.command"


class WithCommand(click.Command):
    """A command whose words after `--` are a command of their own: click would take the first of them for PROCESS."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[COMMAND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND [ARGS]...]"]


@click.command(cls=WithCommand)
@click.argument("job")
@click.argument("process", default="launcher", metavar="[PROCESS]")
@job_options.ANYWHERE
@click.pass_context
def shell(ctx: click.Context, job: str, process: str, where: Where) -> int:
    """Open a shell in a container of a JOB, or run a COMMAND there.

    PROCESS is launcher, worker-1, or just 1 for that worker; without it it is the launcher.

    \b
    Examples:
      mpiboot shell pi 0
      mpiboot shell pi launcher -- ps aux

    Exit codes: those of the shell or of COMMAND; 2 there is no such job or process, it does not run, or the engine
    does not answer. Jobs of --engine local have no containers: there it is exit 2.
    """
    from mpiboot.engines import choose

    jobs, chosen = choose.find(job, where)
    return jobs.shell(chosen, f"worker-{process}" if process.isdigit() else process, ctx.meta[COMMAND])
