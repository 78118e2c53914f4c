"""`mpiboot init`: files to begin with."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath

import click

from mpiboot.job import mpi as runtimes
from mpiboot.job.errors import UserError

IMAGE = "mpiboot/openmpi"
DOCKERFILE = """\
# The image of job.yaml: one of mpiboot's, with your program.
#   docker build --tag {tag} .
FROM {base}
COPY --chown=1000:0 . /opt/{name}
WORKDIR /opt/{name}
# Further packages:
# USER 0
# RUN apt-get update && apt-get install -y --no-install-recommends PACKAGE && rm -rf /var/lib/apt/lists/*
# USER 1000:0
# A program to compile: do it in a stage before, FROM {base}-dev, and COPY --from it what runs.
"""


@click.command(epilog="Exit codes: 0 written, 2 wrong input, or a file is there already; then nothing is written.")
@click.argument("program", nargs=-1, metavar="[-- PROGRAM [ARGS]...]")
@click.option("--image", default=IMAGE, show_default=True, metavar="IMAGE", help="Image of launcher and workers.")
@click.option("--name", metavar="NAME", help="Name of the job.  [default: after the program, else pi]")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, metavar="N",
              help="Number of workers.")  # fmt: skip
@click.option("--slots", type=click.IntRange(min=1), default=2, show_default=True, metavar="N",
              help="Ranks that a worker takes.")  # fmt: skip
@click.option("--mpi", type=click.Choice(runtimes.names(), case_sensitive=False),
              help="MPI runtime of the image.  [default: by its name]")  # fmt: skip
@click.option("--dockerfile", is_flag=True, help="Write a Dockerfile, too, which puts this folder into an image.")
@click.option("-o", "--output", default=".", show_default=True, metavar="DIR", help="Folder; - prints job.yaml.")
def init(
    program: tuple[str, ...], image: str, name: str | None, workers: int, slots: int, mpi: str | None,
    dockerfile: bool, output: str,
) -> None:  # fmt: skip
    """Write a job.yaml with comments, which runs as it is: on this machine, and on a cluster that has the image.

    Without PROGRAM it computes pi, which our images can.

    Example: mpiboot init --workers 4 -- python solver.py --steps 100
    """
    from mpiboot.job.read import manifest, read
    from mpiboot.job.starter import STARTER_COMMAND
    from mpiboot.job.starter import manifest as starter

    name = name or _name(program)
    target = f"{name}:1" if dockerfile else image
    command = program or STARTER_COMMAND
    own = _carries_mpiboot(image)
    runtime = mpi or _runtime(image)
    text = starter(name, target, command, workers=workers, slots=slots, runtime=runtime, own=own)
    read.read(manifest.load(text, "job.yaml"))  # a name that no job may have, for example
    files = {"job.yaml": text}
    if dockerfile:
        files["Dockerfile"] = DOCKERFILE.format(tag=target, base=image, name=name)
    if output == "-":
        click.echo(text, nl=False)
        return
    _write(Path(output), files)
    if program and not dockerfile:
        hint = "--dockerfile writes what puts this folder into an image"
        print(f"mpiboot: the program must be in the image {image}; {hint}", file=sys.stderr)
    for step in (*([f"docker build --tag {target} {output}"] if dockerfile else ()),
                 f"mpiboot run -f {Path(output) / 'job.yaml'}"):  # fmt: skip
        print(f"mpiboot: now: {step}", file=sys.stderr)


def _name(program: tuple[str, ...]) -> str:
    """After the first word that is a program or a script: `python solver.py` -> `solver`."""
    words = [word for word in program if not word.startswith("-")]
    script = next((word for word in words if "." in word), words[0] if words else "pi")
    return re.sub(r"[^a-z0-9]+", "-", PurePosixPath(script).stem.lower()).strip("-") or "job"


def _runtime(image: str) -> str:
    """The MPI runtime that the image's name shows; empty for the default one."""
    from mpiboot.job.quick import runtime_of

    found = runtime_of(image)
    return "" if found is runtimes.DEFAULT else found.name


def _carries_mpiboot(image: str) -> bool:
    """Whether the image carries mpiboot: by its name, or by a look at the image that this machine's engine has."""
    from mpiboot.job.settings import Settings

    if Settings().is_own(image):
        return True
    from mpiboot.containers.endpoint import NoEngineError
    from mpiboot.engines.docker import client, pull

    try:
        found = pull.find(client.connect(), image)
    except NoEngineError:
        return False
    return found is not None and found.own


def _write(folder: Path, files: dict[str, str]) -> None:
    there = [str(folder / name) for name in files if (folder / name).exists()]
    if there:
        raise UserError(f"{' and '.join(there)} is there already; choose another folder with -o, or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
            click.echo(folder / name)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
