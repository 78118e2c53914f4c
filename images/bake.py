"""The table as a buildx bake file: for build farms that make every image for several architectures at once."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from mpiboot.images.base import OFFICIAL
from mpiboot.images.command import labels, stages, target
from mpiboot.images.context import PARTS, assemble
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from mpiboot.images.matrix import Image, Matrix


class BakeError(UserError):
    """The build context has no place."""


def bake_file(matrix: Matrix, folder: Path) -> str:
    """The bake file, in JSON; the context that it names is in `folder` then."""
    if folder.exists() and any(folder.iterdir()):
        if not all((folder / part).exists() for part in PARTS):
            raise BakeError(f"{folder}: is not empty, and not a build context either; give another --context")
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        assemble(folder)
    except OSError as error:
        raise BakeError(f"{folder}: cannot be written: {error.strerror}") from error
    return json.dumps(document(matrix, str(folder)), indent=2)


def document(matrix: Matrix, context: str) -> dict[str, Any]:
    """One target a row. A version tag is added by whoever publishes: only the built image knows its version."""
    return {
        "group": {"default": {"targets": [row.name for row in matrix.usual()]}},
        "target": {row.name: _target(matrix, row, context) for row in matrix.rows.values()},
    }


def _target(matrix: Matrix, row: Image, context: str) -> dict[str, Any]:
    parent = matrix.parent(row)
    base = parent.name if parent else row.base or OFFICIAL
    untold = (".image.version", ".image.description")  # only a look into the built image could fill them in
    known = {key: value for key, value in labels(row, base, "").items() if not key.endswith(untold)}
    return {
        "context": context,
        "dockerfile": "Dockerfile",
        "args": stages(row, OFFICIAL, base),
        "labels": known,
        "platforms": [f"linux/{arch}" for arch in row.arch],
        "tags": [row.latest],
        **({"target": target(row)} if target(row) else {}),
        **({"contexts": {parent.name: f"target:{parent.name}"}} if parent else {}),
    }
