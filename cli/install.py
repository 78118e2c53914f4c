"""`mpiboot install` and `mpiboot bundle`: what an installation takes, for your registry or as one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import docker

    from mpiboot.images.build.publish import Published
    from mpiboot.images.matrix import Matrix

EXIT_CODES = "Exit codes: 0 done, 2 wrong input, or an image or a registry is missing; then no file is written."
OPERATOR, DELIVERY = "operator", "delivery"
USUAL = ("openmpi",)


@click.command(epilog=EXIT_CODES)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--registry", required=True, metavar="R", help="Your registry: host[:port][/path].")
@click.option("--push", is_flag=True, help="Push the images first; they must be built.  [default: off]")
@click.option("--tags", is_flag=True, help="Name images by tag alone, without digests.  [default: off]")
@click.option("--own", multiple=True, metavar="IMAGE", help="A further image that carries mpiboot, under a name of "
              "yours; may be repeated.  [default: none]")  # fmt: skip
@click.option("-o", "--output", default="mpiboot-install", show_default=True, metavar="DIR",
              help="Folder for the files; - prints the manifests.")  # fmt: skip
def install(
    names: tuple[str, ...], registry: str, push: bool, tags: bool, own: tuple[str, ...], output: str
) -> None:
    """Write what installs the operator from your registry: manifests, values of the chart, and a first job.

    NAME are the images for jobs, by default openmpi; `mpiboot images list` shows them. Images are named by digest, so
    that what you apply stays what you have pushed. Without --push the registry must have them.

    Example: mpiboot install --registry registry.example/team --push
    """
    from mpiboot.controller.install.site import Site, files

    wanted = _with_operator(names)
    found = dict(zip(wanted, _published(wanted, registry, push=push, tags=tags), strict=True))
    pinned = {name: one.name if tags else one.pinned for name, one in found.items()}
    source = f"registry {registry}, written by mpiboot install"
    job_image = next((image for name, image in pinned.items() if name not in (OPERATOR, DELIVERY)), "")
    site = Site(pinned[OPERATOR], source, job_image, pinned.get(DELIVERY, ""), own)
    made = {**files(site), "images.txt": "".join(f"{image}\n" for image in pinned.values())}
    if output == "-":
        click.echo(made["mpiboot.yaml"], nl=False)
        return
    folder = Path(output)
    _write(folder, made)
    for image in pinned.values():
        click.echo(image)
    print(f"mpiboot: wrote {', '.join(str(folder / name) for name in made)}", file=sys.stderr)
    print(f"mpiboot: now: kubectl apply --server-side -f {folder / 'mpiboot.yaml'}", file=sys.stderr)


@click.command(epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("names", nargs=-1, metavar="[NAME]...")
def bundle(file: Path, names: tuple[str, ...]) -> None:
    """Write images and manifests as one FILE, for a cluster without a way to a registry.

    FILE is an archive of images: docker load, podman load, ctr images import and kind load image-archive read it. Its
    folder install/ has the manifests, which name the images as they are then loaded. NAME are the images for jobs, by
    default openmpi; the operator is always in it.

    Example: mpiboot bundle mpiboot.tar openmpi mpich
    """
    from mpiboot.containers.client import connect
    from mpiboot.controller.install import site
    from mpiboot.images import matrix
    from mpiboot.images.build import bundle as archive
    from mpiboot.images.build.publish import built_tags, version_tag

    engine, wanted = connect(), _with_operator(names)
    tags = {name: built_tags(engine, matrix.load(), [name]) for name in wanted}
    versions = {name: version_tag(found) for name, found in tags.items()}
    job_image = next((image for name, image in versions.items() if name not in (OPERATOR, DELIVERY)), "")
    made = site.files(site.loaded(job_image, versions.get(DELIVERY, ""), f"loaded from {file.name}"))
    members = {**made, "README.txt": archive.readme(file.name, tuple(versions.values()))}
    archive.save(file, [tag for found in tags.values() for tag in found], members)
    for image in versions.values():
        click.echo(image)
    print(f"mpiboot: wrote {file}; next: tar -xOf {file} install/README.txt", file=sys.stderr)


def _with_operator(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([OPERATOR, *(names or USUAL)]))


def _published(names: Sequence[str], registry: str, *, push: bool, tags: bool) -> list[Published]:
    """Each image as it is in the registry, in the order of the names."""
    from mpiboot.containers.client import connect
    from mpiboot.containers.endpoint import NoEngineError
    from mpiboot.images import matrix
    from mpiboot.images.build import publish

    table = matrix.load()
    table.named(names)  # one error for all that are unknown
    try:
        engine = connect()
    except NoEngineError as error:
        if not push and tags:
            there = [publish.remote_tag(_versioned(None, table, name), registry) for name in names]
            return [publish.Published(name, "") for name in there]
        raise UserError(f"{error}; or leave --push out, and let --tags name images without digests") from error
    if push:
        for name in names:  # before the first push: all of them are built
            publish.built_tags(engine, table, [name])
        pushed = [{one.name: one for one in publish.push(engine, table, [name], registry)} for name in names]
        return [each[publish.version_tag(tuple(each))] for each in pushed]
    there = [publish.remote_tag(_versioned(engine, table, name), registry) for name in names]
    return [publish.Published(name, "") if tags else publish.published(engine, name) for name in there]


def _versioned(engine: docker.DockerClient | None, table: Matrix, name: str) -> str:
    """The image's name with its version, if this machine knows it."""
    from mpiboot import __version__
    from mpiboot.images.build.publish import built_tags, version_tag

    row = table.get(name)
    if not row.runs_mpi:
        return f"{row.repository}:{__version__}"
    if engine is not None and engine.images.list(row.latest):
        return version_tag(built_tags(engine, table, [name]))
    return row.latest


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
