"""The table of images. `load` reads it into frozen rows; one error names everything that is wrong in it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.images.dockerfile import DOCKERFILE, stages
from mpiboot.job.errors import UserError
from mpiboot.job.suggestions import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

OWN = Path(__file__).with_name("matrix.toml")
REPOSITORY = "mpiboot"
KIT = "kit"  # the image that only holds the build steps, for other people's Dockerfiles
HOROVOD = "horovod-"  # the kinds with Horovod begin with this; the framework follows
NONE = "none"  # the runtime of an image that runs no ranks
ARCHITECTURES = ("amd64", "arm64")

_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")


class MatrixError(UserError):
    """The table of images is wrong, or a name is not in it."""


@dataclass(frozen=True)
class Image:
    """One row: an image of ours, and the stages of the Dockerfile that make it."""

    name: str
    runtime: str
    accel: str
    kind: str
    base: str | None = None  # an image, or another row's name; None is Debian
    arguments: Mapping[str, str] = field(default_factory=dict)
    arch: tuple[str, ...] = ARCHITECTURES
    only_when_named: bool = False
    description: str = ""

    @property
    def runs_mpi(self) -> bool:
        """Whether the image has all stages of the Dockerfile; other images end at the stage that `kind` names."""
        return self.runtime != NONE

    @property
    def repository(self) -> str:
        return f"{REPOSITORY}/{self.name}"

    @property
    def latest(self) -> str:
        return f"{self.repository}:latest"


@dataclass(frozen=True)
class Matrix:
    """All rows, in the order of the table."""

    rows: Mapping[str, Image]
    source: str = ""

    def get(self, name: str) -> Image:
        if name not in self.rows:
            raise MatrixError(f"no image is called {name!r}{nearest(name, self.rows)}; all: {', '.join(self.rows)}")
        return self.rows[name]

    def select(self, names: Iterable[str], accel: str | None = None) -> tuple[Image, ...]:
        """The rows of these names, or the rows built by default; with `accel`, only the rows for it."""
        return self.narrow(self.named(names) or self.usual(), accel)

    def named(self, names: Iterable[str]) -> tuple[Image, ...]:
        """The rows of these names, without repetitions."""
        return tuple(self.get(name) for name in dict.fromkeys(names))

    def usual(self) -> tuple[Image, ...]:
        """The rows that `mpiboot images build` builds by default."""
        return tuple(row for row in self.rows.values() if not row.only_when_named)

    def narrow(self, rows: tuple[Image, ...], accel: str | None) -> tuple[Image, ...]:
        """The rows for `accel`; all rows if it is None. No row at all means a mistake of the user: MatrixError."""
        accels = {row.accel for row in self.rows.values()}
        if accel is not None and accel not in accels:
            known = ", ".join(sorted(accels))
            raise MatrixError(f"no image is for {accel!r}{nearest(accel, accels)}; there are: {known}")
        chosen = tuple(row for row in rows if accel in {None, row.accel})
        if not chosen:
            those = ", ".join(row.name for row in rows)
            group = "the images built by default" if rows == self.usual() else f"the named images ({those})"
            there = ", ".join(row.name for row in self.rows.values() if accel in {None, row.accel})
            raise MatrixError(f"no image is chosen: none of {group} is for {accel or 'anything'}; name one of: {there}")
        return chosen

    def parent(self, row: Image) -> Image | None:
        """The row that is the base of `row`; None if its base is an image from elsewhere."""
        return self.rows.get(row.base) if row.base else None

    def with_parents(self, rows: Iterable[Image]) -> tuple[Image, ...]:
        """These rows and all their bases; a row always comes after its base."""
        ordered: dict[str, Image] = {}

        def visit(row: Image) -> None:
            parent = self.parent(row)
            if parent:
                visit(parent)
            ordered[row.name] = row

        for row in rows:
            visit(row)
        return tuple(ordered.values())


def load(path: Path = OWN) -> Matrix:
    """The table in the TOML file at `path`."""
    try:
        return read(tomllib.loads(path.read_text()), str(path))
    except OSError as error:
        raise MatrixError(f"{path}: mpiboot cannot read the table of images: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MatrixError(f"{path} is not a TOML file: {error}") from error


def read(table: Mapping[str, Any], source: str) -> Matrix:
    """The matrix that `table` describes. One error names everything that is wrong, in one line each."""
    problems = list(_unknown("", table, {"arguments", "images"}))
    common = table.get("arguments", {})
    rows: dict[str, Image] = {}
    problems += _texts("arguments", common)
    known = stages(DOCKERFILE.read_text())
    common = common if isinstance(common, dict) else {}
    images = table.get("images", {})
    if not isinstance(images, dict) or not images:
        problems.append("images: must be a table with a row for each image")
        images = {}
    for name, row in images.items():
        found = list(_name_problems(name)) + list(_row_problems(f"images.{name}", row, known))
        problems += found
        if not found:
            rows[name] = _row(name, row, common)
    matrix = Matrix(rows, source)
    problems += _cycles(matrix)
    if problems:
        raise MatrixError("\n  ".join([f"{source}: {problems[0]}", *problems[1:]]))
    return matrix


def _row(name: str, row: Mapping[str, Any], common: Mapping[str, str]) -> Image:
    return Image(
        name=name,
        runtime=row["runtime"],
        accel=row["accel"],
        kind=row["kind"],
        base=row.get("base"),
        arguments={**common, **row.get("arguments", {})},
        arch=tuple(row.get("arch", ARCHITECTURES)),
        only_when_named=row.get("only_when_named", False),
        description=row.get("description", ""),
    )


def _name_problems(name: str) -> Iterable[str]:
    if not _NAME.fullmatch(name):
        yield f"images.{name}: is not a name for an image: use small letters, digits, and single . _ - between them"


def _row_problems(where: str, row: object, known: Collection[str]) -> Iterable[str]:
    if not isinstance(row, dict):
        yield f"{where}: must be a table, is {row!r}"
        return
    yield from _unknown(f"{where}.", row, {f.name for f in fields(Image)} - {"name"})
    for key in ("runtime", "accel", "kind"):
        if key not in row:
            yield f"{where}.{key}: is missing"
    stage_keys = {"kind"} if row.get("runtime") == NONE else {"runtime", "accel", "kind"}
    for key in ("runtime", "accel", "kind", "base", "description"):
        if key in row and not (isinstance(row[key], str) and row[key]):
            yield f"{where}.{key}: must be a word, is {row[key]!r}"
        elif key in row and key in stage_keys and row[key] not in known:
            yield f"{where}.{key}: the Dockerfile has no stage {row[key]!r}{nearest(row[key], known)}"
    if not isinstance(row.get("only_when_named", False), bool):
        yield f"{where}.only_when_named: must be true or false, is {row['only_when_named']!r}"
    yield from _texts(f"{where}.arguments", row.get("arguments", {}))
    arch = row.get("arch", [])
    if not isinstance(arch, list) or any(one not in ARCHITECTURES for one in arch):
        yield f"{where}.arch: must be a list of {' and '.join(ARCHITECTURES)}, is {row['arch']!r}"


def _unknown(prefix: str, table: Mapping[str, Any], known: set[str]) -> Iterable[str]:
    for key in table:
        if key not in known:
            yield f"{prefix}{key}: unknown key{nearest(key, known)} (known: {', '.join(sorted(known))})"


def _texts(where: str, table: object) -> Iterable[str]:
    if not isinstance(table, dict):
        yield f"{where}: must be a table of texts, is {table!r}"
        return
    for key, value in table.items():
        if not isinstance(value, str):
            yield f"{where}.{key}: must be a text, is {value!r}"


def _cycles(matrix: Matrix) -> Iterable[str]:
    done: set[str] = set()
    for start in matrix.rows.values():
        path: list[str] = []
        row: Image | None = start
        while row and row.name not in done and row.name not in path:
            path.append(row.name)
            row = matrix.parent(row)
        if row and row.name in path:
            cycle = " -> ".join([*path[path.index(row.name) :], row.name])
            yield f"images.{row.name}.base: the bases form a cycle: {cycle}"
        done.update(path)
