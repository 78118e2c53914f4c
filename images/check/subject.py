"""The image under check as its static points see it: one running container, and what was read from it once."""

from __future__ import annotations

import contextlib
import shlex
import tarfile
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from mpiboot.images.check import programs, runtime
from mpiboot.images.check.runtime import OUR_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from docker.models.containers import Container

    from mpiboot.images.check.accounts import Account
    from mpiboot.images.check.cutoff import Cutoff
    from mpiboot.images.check.image import Image
    from mpiboot.images.check.programs import Program
    from mpiboot.images.check.runtime import Runtime
    from mpiboot.images.check.sandbox import Sandbox

# Of a program's file: more than the scripts have that start another program.
BEGINNING = 65536
# sshd -T and ssh -G print `word value`; a word may come more than once.
Settings = dict[str, list[str]]


@dataclass(frozen=True)
class Result:
    """How a command in the container ended."""

    code: int
    out: str
    error: str

    @property
    def words(self) -> str:
        """What it said, errors first, on one line."""
        return " ".join(f"{self.error}\n{self.out}".split())


def run(container: Container, command: str, user: str | None = None) -> Result:
    """Run a line of shell in the container, through testinfra, and wait for it."""
    import testinfra  # type: ignore[import-untyped]

    name = cast("str", container.name)
    host = testinfra.get_host(f"docker://{user}@{name}" if user else f"docker://{name}")
    result = host.run(command)
    return Result(result.rc, result.stdout.strip(), result.stderr.strip())


@dataclass(frozen=True)
class Subject:
    """A container of the image that sleeps as root, so that everything in it can be read."""

    image: Image
    container: Container
    sandbox: Sandbox
    cutoff: Cutoff
    account: Account | None
    any_uid: int

    def run(self, command: str) -> Result:
        """As root."""
        return run(self.container, command)

    def run_as_user(self, command: str) -> Result:
        """As the image's own user."""
        return run(self.container, command, self.image.user or "0")

    def run_as_any_uid(self, command: str) -> Result:
        """As a uid that the image does not know."""
        return run(self.container, command, f"{self.any_uid}:0")

    @cached_property
    def runtime(self) -> Runtime | None:
        """The MPI that mpirun in PATH belongs to."""
        return runtime.parse(self.run("mpirun --version").out)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """mpirun and what it starts on a worker."""
        names = ("mpirun", *self.runtime.daemons) if self.runtime else ()
        return tuple(programs.follow(name, self._locate, self._beginning) for name in names)

    @cached_property
    def sshd(self) -> Settings | str:
        """sshd's effective settings with the job's host key, or why it refuses them."""
        # The directory as worker.py makes it.
        result = self.run(f"mkdir -p /run/sshd; /usr/sbin/sshd -T -o HostKey={OUR_FILES}/id_rsa")
        return _settings(result.out) if result.code == 0 else result.words

    @cached_property
    def ssh(self) -> Settings | str:
        """The client's effective settings for a worker, as the image's user has them, or why it refuses them."""
        result = self.run_as_user("ssh -G worker")
        return _settings(result.out) if result.code == 0 else result.words

    def file_attributes(self, path: str) -> Mapping[str, Any]:
        """The extended headers of a file as the engine archives it: capabilities are among them."""
        with _archived(self.container, path) as (_, member):
            return member.pax_headers

    def _locate(self, name: str) -> str:
        return self.run(f'path=$(command -v {shlex.quote(name)}) && readlink -f "$path"').out

    def _beginning(self, path: str) -> bytes:
        with _archived(self.container, path) as (archive, member):
            file = archive.extractfile(member)
            return file.read(BEGINNING) if file else b""


def _settings(text: str) -> Settings:
    settings: Settings = {}
    for line in text.splitlines():
        word, _, value = line.partition(" ")
        settings.setdefault(word.lower(), []).append(value)
    return settings


def read_file(container: Container, path: str) -> str:
    """A text file, also of a container that does not run; empty if it is not there."""
    from docker.errors import NotFound

    try:
        with _archived(container, path) as (archive, member):
            file = archive.extractfile(member)
            return file.read().decode(errors="replace") if file else ""
    except NotFound:
        return ""


@contextlib.contextmanager
def _archived(container: Container, path: str) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The engine's archive of one file, read only as far as it is wanted."""
    chunks, _ = container.get_archive(path)
    try:
        with tarfile.open(fileobj=_Stream(chunks), mode="r|") as archive:  # type: ignore[call-overload]
            member = archive.next()
            assert member is not None
            yield archive, member
    finally:
        cast("Any", chunks).close()


class _Stream:
    """A file to read from, over chunks of bytes."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""

    def read(self, size: int) -> bytes:
        while len(self._held) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._held += chunk
        taken, self._held = self._held[:size], self._held[size:]
        return taken
