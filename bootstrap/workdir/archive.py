"""Archives of a directory: a tar file, compressed by gzip. Nothing that is unpacked leaves the directory."""

from __future__ import annotations

import os
import tarfile
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from mpiboot.bootstrap import exit_codes
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 2**20


class ArchiveError(UserError):
    """The archive is damaged, or its contents cannot be written."""

    exit_code = exit_codes.NO_DATA


class Arriving:
    """An archive that comes in pieces, into a file. Its own end says when it is whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._reader = file, zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def whole(self) -> bool:
        return self._reader.eof

    def add(self, chunk: bytes) -> None:
        self._file.write(chunk)
        try:
            while chunk and not self.whole:
                self._reader.decompress(chunk, CHUNK)
                chunk = self._reader.unconsumed_tail
        except zlib.error as error:
            raise ArchiveError(f"the directory came damaged: {error}") from None


def store(source: Callable[[int], bytes], path: str) -> None:
    """Write an archive to a file that appears when it is whole. A source that ends before leaves nothing.

    This does not wait for the end of the stream: an older API server cannot pass it on.
    """
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            arriving = Arriving(file)
            while not arriving.whole:
                if not (chunk := source(CHUNK)):
                    raise ArchiveError("the connection ended before the whole directory had come")
                arriving.add(chunk)
        os.replace(part, path)
    except OSError as error:
        raise ArchiveError(f"cannot store the directory: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            os.unlink(part)


def growing(path: str) -> int:
    """How many bytes of archives that are not whole yet have come."""
    directory, name = os.path.split(path)
    size = 0
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(f"{name}.") and entry.name.endswith(".part"):
                size += entry.stat().st_size
    return size


def unpack(
    source: IO[bytes],
    directory: str,
    wanted: Callable[[tarfile.TarInfo], bool] = lambda member: True,  # noqa: ARG005
) -> None:
    """Write an archive's contents into a directory. Files that are there already are replaced, others stay."""
    name = ""
    try:
        with tarfile.open(fileobj=source, mode="r|gz") as archive:
            for member in archive:
                name = member.name
                if wanted(member):
                    _write(archive, member, directory)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ArchiveError(f"the archive is damaged: {error}") from None
    except OSError as error:
        where = f" of {name}" if name else ""
        raise ArchiveError(f"cannot write the contents{where}: {error.strerror or error}") from None


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, directory: str) -> None:
    if os.path.normpath(member.name) == ".":
        return  # the directory itself is there, and may belong to another user
    path = os.path.join(directory, member.name)
    parent = os.path.dirname(path)
    if os.path.isabs(member.name) or not is_inside(parent, directory) or os.path.basename(member.name) == "..":
        raise ArchiveError(f"the archive leaves its directory: {member.name}")
    if member.isdir():
        os.makedirs(path, exist_ok=True)
        os.chmod(path, member.mode & 0o777 | 0o700)
        return
    os.makedirs(parent, exist_ok=True)
    if os.path.lexists(path):  # a program that still runs can be replaced, but not written to
        os.unlink(path)
    if member.issym():
        if os.path.isabs(member.linkname) or not is_inside(os.path.join(parent, member.linkname), directory):
            raise ArchiveError(f"the archive leaves its directory: {member.name} -> {member.linkname}")
        os.symlink(member.linkname, path)
    elif member.isreg() and (source := archive.extractfile(member)):
        with open(path, "wb") as file:
            while chunk := source.read(CHUNK):
                file.write(chunk)
        os.chmod(path, member.mode & 0o777)
        os.utime(path, (member.mtime, member.mtime))
    else:
        raise ArchiveError(f"the archive holds something that is no file: {member.name}")


def is_inside(path: str, directory: str) -> bool:
    """Whether a path, with all links in it, is the directory or below it."""
    real, root = os.path.realpath(path), os.path.realpath(directory)
    return real == root or real.startswith(root.rstrip("/") + "/")
