"""`images list`: the table, and which images of it the engine has."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Listed:
    """An image of the table. What is built is empty, or None, if the engine does not have it."""

    name: str
    base: str
    runtime: str
    version: str
    accelerator: str
    kind: str
    built: str  # when, in UTC
    bytes: int | None
    absent: str = ""  # in place of a time: why it is not there


def listed(matrix: Matrix, warn: Callable[[str], None]) -> list[Listed]:
    """All images. Without an engine the function passes the reason to `warn`."""
    try:
        engine = connect()
    except NoEngineError as error:
        warn(str(error))
        return [_of(row, None, "no engine") for row in matrix.rows.values()]
    try:
        return [_of(row, _attributes(engine, row), "no") for row in matrix.rows.values()]
    finally:
        engine.close()


def table(images: list[Listed]) -> str:
    """The images as text."""
    lines = [HEADER, *map(_line, images)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    padded = ((word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join("  ".join(words).rstrip() for words in padded)


def document(images: list[Listed]) -> str:
    """The images as JSON: keys may be added, and none changes."""
    rows = [{key: value for key, value in asdict(image).items() if key != "absent"} for image in images]
    return json.dumps({"version": 1, "images": rows}, indent=2)


def _attributes(engine: docker.DockerClient, row: Image) -> dict[str, object] | None:
    found = engine.images.list(row.latest)
    return found[0].attrs if found else None


def _of(row: Image, attributes: dict[str, object] | None, absent: str) -> Listed:
    base = row.base or OFFICIAL
    if attributes is None:
        return Listed(row.name, base, row.runtime, "", row.accel, row.kind, "", None, absent)
    config = attributes["Config"]
    assert isinstance(config, dict)
    labels = config.get("Labels") or {}
    built = f"{str(attributes['Created'])[:19]}Z"
    base, version = labels.get(OCI_BASE, base), labels.get(OCI_VERSION, "?")
    return Listed(row.name, base, row.runtime, version, row.accel, row.kind, built, int(str(attributes["Size"])))


def _line(image: Listed) -> tuple[str, ...]:
    built = image.built[:16].replace("T", " ") or image.absent
    size = "-" if image.bytes is None else f"{image.bytes / 1e6:.1f} MB"
    return (image.name, image.base, image.runtime, image.version or "-", image.accelerator, image.kind, built, size)
