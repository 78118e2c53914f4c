"""`mpiboot images`: the matrix of images, from the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.images.matrix import Matrix

EXIT_CODES = "Exit codes: 0 done, 2 wrong input or nothing to work with, 130 stopped by Ctrl-C."


class _Group(click.Group):
    """`check` brings testinfra along, which the others need not wait for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "check"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "check":
            return super().get_command(ctx, cmd_name)
        try:
            command = importlib.import_module("mpiboot.cli.images_check").check
        except ModuleNotFoundError as error:
            text = f"images check needs the Python package {error.name}; pip install 'mpiboot[images]'"
            raise UserError(text) from error
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Group, epilog=EXIT_CODES)
@click.option(
    "--matrix",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A table of images (TOML) in place of mpiboot's own.  [default: images/matrix.toml]",
)
@click.pass_context
def images(ctx: click.Context, matrix: Path | None) -> None:
    """Build, list and check MPI images."""
    ctx.obj = matrix


@images.command("list", epilog=EXIT_CODES)
@click.pass_obj
def list_(matrix: Path | None) -> None:
    """List the images of the table: what they are made of, and what this machine's engine has of them."""
    from mpiboot.images.listing import table

    click.echo(table(_table(matrix)))


@images.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--accel", metavar="WORD", help="Only images for this accelerator: cpu, cuda, rocm.  [default: any]")
@click.option("--base", metavar="IMAGE", help="Add SSH and MPI to this Debian or Ubuntu image.  [default: the table's]")
@click.option("--tag", metavar="TAG", help="What to call the image that is built with --base.  [default: none]")
@click.option("--fresh", is_flag=True, help="Get, or make, Debian's base image anew.  [default: off]")
@click.option("--again", is_flag=True, help="Run every step, even if its result is there.  [default: off]")
@click.pass_obj
def build(
    matrix: Path | None,
    names: tuple[str, ...],
    accel: str | None,
    base: str | None,
    tag: str | None,
    *,
    fresh: bool,
    again: bool,
) -> None:
    """Build images, each after its base, side by side where possible.

    Without NAME: all that the table does not mark as built only when named.
    """
    from mpiboot.containers import connect
    from mpiboot.images.build import Builder, OnBase
    from mpiboot.images.check.stop import stopping_by_signal
    from mpiboot.images.foreign import probe
    from mpiboot.images.progress import Progress
    from mpiboot.images.reference import tagged

    if (base is None) != (tag is None) or (base is not None and len(names) != 1):
        raise UserError("--base, --tag and one NAME go together: mpiboot images build openmpi --base IMAGE --tag TAG")
    chosen = _table(matrix).select(names, accel)
    on = OnBase(base, tagged(tag)) if base and tag else None
    engine = connect()
    if on:
        probe(engine, on.image)
    try:
        with stopping_by_signal():
            Builder(engine, _table(matrix), Progress(), again=again).build(chosen, on, fresh=fresh)
    except SystemExit:
        print("mpiboot: stopped; images that were complete are kept, nothing else is left behind", file=sys.stderr)
        raise


@images.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--registry", required=True, metavar="R", help="Where to: host[:port][/path].  [required]")
@click.option("--accel", metavar="WORD", help="Only images for this accelerator: cpu, cuda, rocm.  [default: any]")
@click.pass_obj
def push(matrix: Path | None, names: tuple[str, ...], registry: str, accel: str | None) -> None:
    """Push built images to a registry, under their version and as latest.

    Without NAME: all that are built.
    """
    from mpiboot.containers import connect
    from mpiboot.images.publish import push as push_all

    for tag in push_all(connect(), _table(matrix), names, registry, accel):
        click.echo(tag)


@images.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", metavar="CLUSTER", help="Into the nodes of this kind cluster.  [default: none]")
@click.option("--containerd", metavar="SOCKET", help="Into the containerd at this socket.  [default: none]")
@click.option("--namespace", default="k8s.io", show_default=True, metavar="NAME", help="containerd's namespace.")
@click.pass_obj
def load(
    matrix: Path | None, names: tuple[str, ...], kind: str | None, containerd: str | None, namespace: str
) -> None:
    """Load built images into a kind cluster, or into a containerd, without a registry.

    Without NAME: all that are built.
    """
    from mpiboot.containers import connect
    from mpiboot.images.publish import load as load_all

    for tag in load_all(connect(), _table(matrix), names, kind, containerd, namespace):
        click.echo(tag)


@images.command(epilog=EXIT_CODES)
@click.option(
    "--context",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/images"),
    show_default=True,
    metavar="FOLDER",
    help="Where to put what the builds need.",
)
@click.pass_obj
def bake(matrix: Path | None, context: Path) -> None:
    """Print the table as a buildx bake file, for amd64 and arm64, and write the build context that it names."""
    from mpiboot.images.bake import bake_file

    click.echo(bake_file(_table(matrix), context))


@images.command(epilog=EXIT_CODES)
@click.argument("name")
@click.pass_obj
def fragment(matrix: Path | None, name: str) -> None:
    """Print the lines that add SSH and the MPI runtime of image NAME to a Dockerfile of your own."""
    from mpiboot.images.fragment import lines

    click.echo(lines(_table(matrix).get(name)))


@images.command(epilog=EXIT_CODES)
@click.argument("image")
def sbom(image: str) -> None:
    """Print what is in IMAGE, every Debian and Python package, as SPDX 2.3 in JSON."""
    from mpiboot.containers import connect
    from mpiboot.images.sbom import document

    click.echo(document(connect(), image))


def _table(path: Path | None) -> Matrix:
    from mpiboot.images import matrix

    return matrix.load(path) if path else matrix.load()
