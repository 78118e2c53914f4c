"""A directory of this machine as an archive: what is in it, what stays here, and the bytes to send."""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mpiboot.bootstrap.workdir.archive import is_inside
from mpiboot.engines.kubernetes.ignore_rules import FILE, IgnoreRules
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import IO

MOST = 1_000_000_000  # bytes
MOST_FILES = 100_000
QUICKLY = 1  # of gzip's levels: a cluster is rarely slower than the others


@dataclass(frozen=True)
class Entry:
    """A file, a link or a directory, by its path in the directory."""

    path: str
    mode: int
    size: int
    mtime: float
    link: str = ""


@dataclass(frozen=True)
class Listing:
    """What is sent of a directory. `left_out`: links that lead out of it, and what is no file."""

    directory: Path
    entries: tuple[Entry, ...]
    size: int
    left_out: tuple[str, ...]


def listing(directory: Path) -> Listing:
    """Look through a directory; an error if there is too much in it."""
    rules = IgnoreRules(_lines(directory / FILE))
    entries: list[Entry] = []
    left_out: list[str] = []
    size = 0
    for entry in _walk(directory, "", rules):
        kind = stat.S_IFMT(entry.mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            left_out.append(f"{entry.path} (no file)")
        elif (sent := _inside(directory, entry) if kind == stat.S_IFLNK else entry) is None:
            left_out.append(f"{entry.path} (a link that leads out)")
        else:
            entries.append(sent)
            size += sent.size
        if size > MOST or len(entries) > MOST_FILES:
            raise _too_much(directory, entries)
    return Listing(directory, tuple(entries), size, tuple(left_out))


def write(wanted: Listing, sink: Callable[[bytes], object], sent: Callable[[int], object]) -> None:
    """Give the archive's bytes to `sink`, and to `sent` how many bytes of files are in it so far."""
    done = 0
    target = cast("IO[bytes]", _Sink(sink))
    with (
        gzip.GzipFile(fileobj=target, mode="wb", compresslevel=QUICKLY, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", bufsize=2**18) as archive,
    ):
        for entry in wanted.entries:
            _add(archive, wanted.directory, entry)
            done += entry.size
            sent(done)


def _add(archive: tarfile.TarFile, directory: Path, entry: Entry) -> None:
    header = tarfile.TarInfo(entry.path)
    header.mode, header.mtime = stat.S_IMODE(entry.mode), entry.mtime
    if stat.S_ISDIR(entry.mode):
        header.type = tarfile.DIRTYPE
        archive.addfile(header)
    elif entry.link:
        header.type, header.linkname = tarfile.SYMTYPE, entry.link
        archive.addfile(header)
    else:
        try:
            with (directory / entry.path).open("rb") as file:
                header.size = os.fstat(file.fileno()).st_size
                archive.addfile(header, file)
        except OSError as error:
            # tarfile's own error, for a file that became shorter, has no text for users
            why = error.strerror or "it changes while it is sent"
            raise UserError(f"cannot send {entry.path}: {why}; name it in {FILE} to leave it out") from None


class _Sink:
    """A file to write to, as gzip wants it."""

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self._sink = sink

    def write(self, data: bytes) -> int:
        self._sink(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""


def _walk(directory: Path, below: str, rules: IgnoreRules) -> Iterator[Entry]:
    try:
        with os.scandir(directory / below) as found:
            names = sorted(found, key=lambda each: each.name)
    except OSError as error:
        where = below or str(directory)
        raise UserError(f"cannot read {where}: {error.strerror}; name it in {FILE} to leave it out") from None
    for each in names:
        path = f"{below}/{each.name}" if below else each.name
        is_directory = each.is_dir(follow_symlinks=False)
        if rules.leaves_out(path, directory=is_directory):
            continue
        found_stat = each.stat(follow_symlinks=False)
        yield Entry(path, found_stat.st_mode, 0 if is_directory else found_stat.st_size, found_stat.st_mtime)
        if is_directory:
            yield from _walk(directory, path, rules)


def _inside(directory: Path, entry: Entry) -> Entry | None:
    """A link with a target relative to its own place; None if it leads out of the directory."""
    link = directory / entry.path
    target = link.readlink()
    if not is_inside(str(link.parent / target), str(directory)):
        return None
    relative = os.path.relpath(link.parent / target, link.parent) if target.is_absolute() else str(target)
    return Entry(entry.path, entry.mode, 0, entry.mtime, relative)


def _too_much(directory: Path, entries: list[Entry]) -> UserError:
    sizes: dict[str, int] = {}
    for entry in entries:
        top = entry.path.partition("/")[0]
        sizes[top] = sizes.get(top, 0) + entry.size
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    named = ", ".join(f"{name} ({sizes[name] / 1e6:.0f} MB)" for name in largest)
    return UserError(
        f"{directory} has more than {MOST / 1e9:g} GB or {MOST_FILES:,} files, too much to send to a cluster; most of "
        f"what was counted is in {named}; name it in {directory / FILE}, or use --no-workdir"
    )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
