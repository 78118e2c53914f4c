"""The job to run: from a manifest, or from a program, an image and some numbers."""

from __future__ import annotations

import re
import secrets
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mpiboot.job import quick
from mpiboot.job.errors import UserError
from mpiboot.job.read import manifest, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.settings import Settings

RANDOM = "bcdfghjkmnpqrstvwxz23456789"  # no vowels: no words by chance
LONGEST = 24


@dataclass(frozen=True)
class Program:
    """A program to run as ranks. None: not given."""

    image: str
    command: Sequence[str]
    processes: int | None
    workers: int
    name: str | None = None
    slots: int | None = None
    implementation: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    ssh_dir: str | None = None
    tag_output: bool = False  # each line begins with its rank
    output_at_once: bool = False  # also lines that have no end yet


@dataclass(frozen=True)
class Request:
    """A job, its manifest's data, and the file that it comes from."""

    job: read.ReadJob
    data: Mapping[str, Any]
    source: str = ""


def from_file(path: str, name: str | None) -> Request:
    """The job in a manifest file; `-` is stdin. `name` replaces the manifest's."""
    return from_text(text_of(path), path, name)


def text_of(path: str) -> str:
    """A manifest file's text; `-` is stdin."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read {path}: {why}") from error


def from_text(text: str, path: str, name: str | None) -> Request:
    """The job in the text of a manifest file."""
    source = "stdin" if path == "-" else path
    loaded = manifest.load(text, source)
    if name is not None and isinstance(loaded.data.get("metadata"), dict):
        renamed = {**loaded.data, "metadata": {**loaded.data["metadata"], "name": name}}
        loaded = manifest.Manifest(renamed, loaded.source, loaded.lines, loaded.warnings)
    return Request(read.read(loaded), loaded.data, source)


def from_program(program: Program, settings: Settings | None = None) -> Request:
    """The job that runs a program."""
    data = quick.manifest_for(
        program.name or name_for(program.command),
        program.image,
        program.command,
        program.processes,
        program.workers,
        implementation=program.implementation,
        slots=program.slots,
        env=program.env,
        ssh_auth_mount_path=program.ssh_dir,
        settings=settings,
        tag_output=program.tag_output,
        output_at_once=program.output_at_once,
    )
    return Request(read.read(manifest.Manifest(data, "the command line")), data)


def annotated(wanted: Request, annotations: Mapping[str, str]) -> Request:
    """The same with these annotations, which replace those of the manifest."""
    if not annotations:
        return wanted
    job, metadata = wanted.job.job, wanted.data["metadata"]
    data = {**wanted.data, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}
    job = replace(job, annotations={**job.annotations, **annotations})
    return Request(replace(wanted.job, job=job), data, wanted.source)


def name_for(command: Sequence[str]) -> str:
    """A name that no other job has, after the program: `./pi.py 100` -> `pi-x4kq`."""
    words = [word for word in command if not word.startswith("-") and not _is_passed_over(word)]
    # Of a whole script (`sh -c 'hostname; date'`) the first word is enough.
    stem = PurePosixPath(re.split(r"[\s;]", words[0].strip())[0]).stem if words else "job"
    letters = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:LONGEST].strip("-")
    if not letters or not letters[0].isalpha():
        letters = f"job-{letters}".strip("-")
    return f"{letters}-{''.join(secrets.choice(RANDOM) for _ in range(4))}"


def _is_passed_over(word: str) -> bool:
    # A number is the value of an option, such as `-np 4` of mpirun or horovodrun.
    return word.isdecimal() or quick.is_starter(word) or PurePosixPath(word).name in _PASSED_OVER


_PASSED_OVER = {"python", "python3", "sh", "bash", "env", "horovodrun"}
