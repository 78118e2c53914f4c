"""`mpiboot cc`."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from docker import APIClient

WORDS = "mpiboot.words"
OWN = ("--image", "--engine", "-h", "--help")


class Compiler(click.Command):
    """A command whose own options come first. All other words belong to the compiler, unchanged."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = 0
        while own < len(args) and args[own].partition("=")[0] in OWN:
            own += 1 if "=" in args[own] or args[own] in {"-h", "--help"} else 2
        rest = args[own:]
        ctx.meta[WORDS] = rest[1:] if rest[:1] == ["--"] else rest
        return super().parse_args(ctx, args[:own])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[--] ARGS..."]


@click.command(cls=Compiler)
@click.option("--image", default="mpiboot/openmpi", show_default=True, metavar="IMAGE",
              help="Image that the program will run in; its -dev image compiles.")  # fmt: skip
@click.option("--engine", type=click.Choice(["docker", "local"]),
              help="Whose compilers.  [default: docker if an engine answers, else local]")  # fmt: skip
@click.pass_context
def cc(ctx: click.Context, image: str, engine: str | None) -> int:
    """Compile an MPI program of the current directory, for an image.

    ARGS are those of a compiler: mpiboot cc -O2 pi.c -o pi. The ending of the sources chooses mpicc, mpicxx or mpifort.
    If ARGS begin with a program, that is run: mpiboot cc make -j2. The files belong to you.

    Exit codes: the compiler's own; 2 the input is wrong, or the image is not there; 127 the image has no such program.
    """
    from mpiboot.engines import compilation, directories
    from mpiboot.job import mpi, quick
    from mpiboot.job.errors import UserError

    words = ctx.meta[WORDS]
    api = None if engine == "local" else _docker(required=engine == "docker")
    if api is None:
        return _on_this_machine(compilation.command(words, mpi.DEFAULT))
    command = compilation.command(words, quick.runtime_of(image))
    workdir = directories.of_caller().workdir
    if workdir is None:
        raise UserError("a container cannot have the current directory, a part of this machine's system; cd to another")
    from mpiboot.engines.docker import bind_mounts, once, pull

    if not bind_mounts.is_here(api):
        raise UserError(f"the engine at {api.base_url} may run on another machine, which has not this directory")
    compiling = compilation.image_with_compilers(image)
    if pull.find(api, compiling) is None:
        raise UserError(compilation.how_to_get(compiling))
    return once.run(api, compiling, command, workdir)


def _docker(*, required: bool) -> APIClient | None:
    from mpiboot.containers.endpoint import NoEngineError
    from mpiboot.engines.docker import client
    from mpiboot.engines.local import tools

    try:
        return client.connect()
    except NoEngineError as error:
        if required or not shutil.which("mpicc", path=tools.path()):
            raise
        click.echo(f"mpiboot: {error}\nmpiboot: this machine's compilers are used instead (--engine local)", err=True)
        return None


def _on_this_machine(command: list[str]) -> int:
    from mpiboot.engines.local import tools

    try:
        return subprocess.run(command, check=False, env={**os.environ, "PATH": tools.path()}).returncode
    except OSError as error:
        click.echo(f"mpiboot: cannot run {command[0]} of this machine: {error.strerror}", err=True)
        return 127
