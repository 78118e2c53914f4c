"""`mpiboot images`: the commands that build, list, publish and check images."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiboot.cli.lazy_commands import Group
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.images.matrix import Matrix

EXIT_CODES = "Exit codes: 0 done, 2 wrong input or nothing to work with, 130 stopped by Ctrl-C."


class _Group(Group):
    """The group imports `check` late: `check` imports testinfra, and the other commands need not wait for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "check"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "check":
            return super().get_command(ctx, cmd_name)
        command = importlib.import_module("mpiboot.cli.images_check").check
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
@click.option("-o", "--output", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output; docs/images.md has the keys of json.")  # fmt: skip
@click.pass_obj
def list_(matrix: Path | None, form: str) -> None:
    """List the images of the table with their bases, and what this machine's engine has of each."""
    from mpiboot.images.build import listing

    found = listing.listed(_table(matrix), lambda text: click.echo(f"mpiboot: {text}", err=True))
    click.echo(listing.document(found) if form == "json" else listing.table(found))


@images.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--accel", metavar="WORD", help="Only images for this accelerator: cpu, cuda, rocm.  [default: any]")
@click.option("--base", metavar="IMAGE", help="Add SSH and MPI to this Debian or Ubuntu image.  [default: the table's]")
@click.option("--tag", metavar="TAG", help="Name of the image that --base makes.  [default: none]")
@click.option("--fresh", is_flag=True, help="Get or make Debian's base image again.  [default: off]")
@click.option("--again", is_flag=True, help="Run every step, even if the cache has its result.  [default: off]")
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
    """Build images: each after its base, several at once where possible.

    Without NAME, it builds all images except those that the table marks as only_when_named.
    """
    from mpiboot.containers.client import connect
    from mpiboot.images.build.base_probe import probe
    from mpiboot.images.build.build import Builder, CustomBase
    from mpiboot.images.build.progress import Progress
    from mpiboot.images.build.tag import tagged
    from mpiboot.images.check.stop import stopping_by_signal

    if (base is None) != (tag is None) or (base is not None and len(names) != 1):
        raise UserError("--base, --tag and one NAME go together: mpiboot images build openmpi --base IMAGE --tag TAG")
    table = _table(matrix)
    chosen = table.select(names, accel)
    custom = CustomBase(base, tagged(tag)) if base and tag else None
    engine = connect()
    if custom:
        probe(engine, custom.image)
    try:
        with stopping_by_signal():
            Builder(engine, table, Progress(), again=again).build(chosen, custom, fresh=fresh)
    except SystemExit:
        kept = "the engine keeps the images that were complete, and nothing else stays"
        print(f"mpiboot: stopped; {kept}", file=sys.stderr)
        raise


@images.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--registry", required=True, metavar="R", help="Registry to push to: host[:port][/path].")
@click.option("--accel", metavar="WORD", help="Only images for this accelerator: cpu, cuda, rocm.  [default: any]")
@click.pass_obj
def push(matrix: Path | None, names: tuple[str, ...], registry: str, accel: str | None) -> None:
    """Push built images to a registry, with their version and latest as tags.

    Without NAME, it pushes all built images.
    """
    from mpiboot.containers.client import connect
    from mpiboot.images.build.publish import push as push_all

    for one in push_all(connect(), _table(matrix), names, registry, accel):
        click.echo(one.name)


@images.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", metavar="CLUSTER", help="Load into the nodes of this kind cluster.  [default: none]")
@click.option("--containerd", metavar="SOCKET", help="Load into the containerd at this socket.  [default: none]")
@click.option("--namespace", default="k8s.io", show_default=True, metavar="NAME", help="containerd's namespace.")
@click.pass_obj
def load(
    matrix: Path | None, names: tuple[str, ...], kind: str | None, containerd: str | None, namespace: str
) -> None:
    """Load built images into a kind cluster, or into a containerd, without a registry.

    Without NAME, it loads all built images.
    """
    from mpiboot.containers.client import connect
    from mpiboot.images.build.publish import load as load_all

    for tag in load_all(connect(), _table(matrix), names, kind, containerd, namespace):
        click.echo(tag)


@images.command(epilog=EXIT_CODES)
@click.option(
    "--context",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/images"),
    show_default=True,
    metavar="FOLDER",
    help="Folder for the files that the builds need.",
)
@click.pass_obj
def bake(matrix: Path | None, context: Path) -> None:
    """Print the table as a buildx bake file, for amd64 and arm64, and write the build context that it names."""
    from mpiboot.images.build.bake import bake_file

    click.echo(bake_file(_table(matrix), context))


@images.command(epilog=EXIT_CODES)
@click.argument("name")
@click.pass_obj
def fragment(matrix: Path | None, name: str) -> None:
    """Print the lines that add SSH and the MPI runtime of image NAME to a Dockerfile of your own."""
    from mpiboot.images.build.fragment import lines

    click.echo(lines(_table(matrix).get(name)))


@images.command(epilog=EXIT_CODES)
@click.argument("image")
def sbom(image: str) -> None:
    """Print every Debian and Python package in IMAGE, as SPDX 2.3 in JSON."""
    from mpiboot.containers.client import connect
    from mpiboot.images.build.sbom import document

    click.echo(document(connect(), image))


def _table(path: Path | None) -> Matrix:
    from mpiboot.images import matrix

    return matrix.load(path) if path else matrix.load()
