"""What somebody wants to run: a manifest's job, or a program, an image and some numbers."""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpiboot.job import manifest, quick, read
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpiboot.job.model import Implementation
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
    implementation: Implementation | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    ssh_dir: str | None = None


@dataclass(frozen=True)
class Requested:
    """A job, what to know about its manifest, and a digest by which two starts of one manifest are recognized."""

    job: read.ReadJob
    digest: str
    source: str = ""


def from_file(path: str, name: str | None) -> Requested:
    """The job in a manifest file; `-` is stdin. `name` replaces the manifest's."""
    return from_text(text_of(path), path, name)


def text_of(path: str) -> str:
    """A manifest file's text; `-` is stdin."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read {path}: {why}") from error


def from_text(text: str, path: str, name: str | None) -> Requested:
    """The job in the text of a manifest file."""
    source = "stdin" if path == "-" else path
    loaded = manifest.load(text, source)
    if name is not None and isinstance(loaded.data.get("metadata"), dict):
        renamed = {**loaded.data, "metadata": {**loaded.data["metadata"], "name": name}}
        loaded = manifest.Manifest(renamed, loaded.source, loaded.lines, loaded.warnings)
    return Requested(read.read(loaded), digest_of(text), source)


def from_program(program: Program, settings: Settings | None = None) -> Requested:
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
    )
    return Requested(read.read(manifest.Manifest(data, "the command line")), digest_of(repr(program)))


def name_for(command: Sequence[str]) -> str:
    """A name that nobody has, after the program: `./pi.py 100` -> `pi-x4kq`."""
    words = [word for word in command if not word.startswith("-") and PurePosixPath(word).name not in _PASSED_OVER]
    # Of a whole script (`sh -c 'hostname; date'`) the first word says enough.
    stem = PurePosixPath(re.split(r"[\s;]", words[0].strip())[0]).stem if words else "job"
    letters = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:LONGEST].strip("-")
    if not letters or not letters[0].isalpha():
        letters = f"job-{letters}".strip("-")
    return f"{letters}-{''.join(secrets.choice(RANDOM) for _ in range(4))}"


def runtime_named(name: str | None) -> Implementation | None:
    """The runtime of that name, in any case of letters."""
    known: tuple[Implementation, ...] = ("OpenMPI", "Intel", "MPICH")
    return next((one for one in known if name and one.lower() == name.lower()), None)


def digest_of(text: str) -> str:
    """A short digest of a manifest's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_PASSED_OVER = {*quick.STARTERS, "python", "python3", "sh", "bash", "env"}
