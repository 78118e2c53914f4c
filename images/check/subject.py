"""The image under check, for the static points: one running container, and the facts read from it."""

from __future__ import annotations

import contextlib
import posixpath
import tarfile
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from mpiboot.images.check import programs
from mpiboot.images.check.host import host
from mpiboot.images.check.runtime import OUR_FILES
from mpiboot.job.mpi import identify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from docker.models.containers import Container
    from testinfra.backend.base import CommandResult

    from mpiboot.images.check.accounts import Account
    from mpiboot.images.check.cutoff import Cutoff
    from mpiboot.images.check.host import Host
    from mpiboot.images.check.image import Image
    from mpiboot.images.check.programs import Program
    from mpiboot.images.check.sandbox import Sandbox
    from mpiboot.job.mpi import Installed

# Bytes to read of a program's file: scripts that start another program are shorter.
BEGINNING = 65536
# Bytes to read of /etc/passwd: enough for thousands of users. The image decides how long the file is.
LONGEST_TEXT = 1_000_000
MOST_LINKS = 5
# sshd -T and ssh -G print `word value`; a word may come more than once.
Settings = dict[str, list[str]]


@dataclass(frozen=True)
class Result:
    """How a command in the container ended."""

    code: int
    out: str
    error: str

    @property
    def one_line(self) -> str:
        """The output on one line, errors first."""
        return " ".join(f"{self.error}\n{self.out}".split())


def run(container: Container, command: str, user: str | None = None) -> Result:
    """Run a line of shell in the container, through testinfra, and wait for it."""
    return _result(host(cast("str", container.name), user).run(command))


def _result(done: CommandResult) -> Result:
    return Result(done.rc, done.stdout.strip(), done.stderr.strip())


@dataclass(frozen=True)
class Subject:
    """A container of the image that sleeps as root, which can read every file."""

    image: Image
    container: Container
    sandbox: Sandbox
    cutoff: Cutoff
    account: Account | None
    any_uid: int

    @cached_property
    def as_root(self) -> Host:
        """The container as root."""
        return host(cast("str", self.container.name))

    @cached_property
    def as_user(self) -> Host:
        """The container as the image's own user."""
        return host(cast("str", self.container.name), self.image.user or "0", like=self.as_root)

    @cached_property
    def as_any_uid(self) -> Host:
        """The container as a uid that the image does not know."""
        return host(cast("str", self.container.name), f"{self.any_uid}:0", like=self.as_root)

    def run(self, command: str) -> Result:
        """Run a line of shell as root."""
        return _result(self.as_root.run(command))

    def run_as_user(self, command: str) -> Result:
        """Run a line of shell as the image's own user."""
        return _result(self.as_user.run(command))

    @cached_property
    def mpi(self) -> Installed | None:
        """The MPI of the mpirun in PATH."""
        return identify(self.run("mpirun --version").out)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """mpirun and the daemons that it starts on a worker."""
        names = ("mpirun", *self.mpi.daemons) if self.mpi else ()
        return tuple(programs.follow(name, self._locate, self._beginning) for name in names)

    @cached_property
    def sshd(self) -> Settings | str:
        """sshd's effective settings with the job's host key, or why it refuses them."""
        # A job's worker makes this directory too.
        result = self.run(f"mkdir -p /run/sshd; /usr/sbin/sshd -T -o HostKey={OUR_FILES}/id_rsa")
        return _settings(result.out) if result.code == 0 else result.one_line

    @cached_property
    def ssh(self) -> Settings | str:
        """The client's effective settings for a worker, as the image's user has them, or why it refuses them."""
        result = self.run_as_user("ssh -G worker")
        return _settings(result.out) if result.code == 0 else result.one_line

    def file_attributes(self, path: str) -> Mapping[str, Any]:
        """The extended headers of a file in the engine's archive, which include file capabilities."""
        with _archived(self.container, path) as (_, member):
            return member.pax_headers

    def _locate(self, name: str) -> str:
        path = self.as_root.run("command -v %s", name).stdout.strip()
        return str(self.as_root.file(path).linked_to) if path else ""

    def _beginning(self, path: str) -> bytes:
        with _archived(self.container, path) as (archive, member):
            return _beginning(archive, member, BEGINNING)


def _settings(text: str) -> Settings:
    settings: Settings = {}
    for line in text.splitlines():
        word, _, value = line.partition(" ")
        settings.setdefault(word.lower(), []).append(value)
    return settings


def read_file(container: Container, path: str) -> str:
    """The beginning of a text file, also of a stopped container; empty without the file. It follows links."""
    from docker.errors import NotFound

    for _ in range(MOST_LINKS):
        try:
            with _archived(container, path) as (archive, member):
                if not member.issym():
                    return _beginning(archive, member, LONGEST_TEXT).decode(errors="replace")
                path = posixpath.join(posixpath.dirname(path), member.linkname)
        except NotFound:
            return ""
    return ""


def _beginning(archive: tarfile.TarFile, member: tarfile.TarInfo, size: int) -> bytes:
    """The first `size` bytes of a regular file; of anything else, none."""
    file = archive.extractfile(member) if member.isreg() else None
    return file.read(size) if file else b""


@contextlib.contextmanager
def _archived(container: Container, path: str) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The engine's archive of one file. The caller reads as much of it as it needs."""
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
