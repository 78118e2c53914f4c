"""`images list`: the table, and which images of it the engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.containers.client import connect
from mpiboot.containers.endpoint import NoEngineError
from mpiboot.images.build.base import OFFICIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    import docker

    from mpiboot.images.matrix import Image, Matrix

HEADER = ("NAME", "BASE", "RUNTIME", "VERSION", "ACCEL", "KIND", "BUILT", "SIZE")
OCI_VERSION = "org.opencontainers.image.version"
OCI_BASE = "org.opencontainers.image.base.name"


def table(matrix: Matrix, warn: Callable[[str], None]) -> str:
    """The rows as text. Without an engine, the function passes the reason to `warn` and lists the table alone."""
    try:
        engine = connect()
    except NoEngineError as error:
        warn(str(error))
        lines = [HEADER, *[_line(row, None, "no engine") for row in matrix.rows.values()]]
    else:
        lines = [HEADER, *[_line(row, _attributes(engine, row), "no") for row in matrix.rows.values()]]
        engine.close()
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    padded = ((word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join("  ".join(words).rstrip() for words in padded)


def _attributes(engine: docker.DockerClient, row: Image) -> dict[str, object] | None:
    found = engine.images.list(row.latest)
    return found[0].attrs if found else None


def _line(row: Image, attributes: dict[str, object] | None, absent: str) -> tuple[str, ...]:
    if attributes is None:
        return (row.name, row.base or OFFICIAL, row.runtime, "-", row.accel, row.kind, absent, "-")
    config = attributes["Config"]
    assert isinstance(config, dict)
    labels = config.get("Labels") or {}
    base, version = labels.get(OCI_BASE, row.base or OFFICIAL), labels.get(OCI_VERSION, "?")
    built, size = str(attributes["Created"])[:16].replace("T", " "), float(str(attributes["Size"]))
    return (row.name, base, row.runtime, version, row.accel, row.kind, built, f"{size / 1e6:.1f} MB")
