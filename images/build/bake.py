"""The table as a buildx bake file: for build farms that build every image for several architectures at once."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from mpiboot.images.build.base import OFFICIAL
from mpiboot.images.build.context import PARTS, assemble
from mpiboot.images.build.docker_command import labels, stages, target
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from mpiboot.images.matrix import Image, Matrix


def bake_file(matrix: Matrix, folder: Path) -> str:
    """The bake file, in JSON. The function writes the build context that the file names into `folder`."""
    if folder.exists() and any(folder.iterdir()):
        if not all((folder / part).exists() for part in PARTS):
            raise UserError(f"the folder {folder} is not empty and is no build context; give another --context")
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        assemble(folder)
    except OSError as error:
        raise UserError(f"{folder}: mpiboot cannot write to this folder: {error.strerror}") from error
    return json.dumps(document(matrix, str(folder)), indent=2)


def document(matrix: Matrix, context: str) -> dict[str, Any]:
    """One target a row. The build farm adds the version tag: only the built image knows its version."""
    return {
        "group": {"default": {"targets": [row.name for row in matrix.usual()]}},
        "target": {row.name: _target(matrix, row, context) for row in matrix.rows.values()},
    }


def _target(matrix: Matrix, row: Image, context: str) -> dict[str, Any]:
    parent = matrix.parent(row)
    base = parent.name if parent else row.base or OFFICIAL
    not_known = (".image.version", ".image.description")  # only the built image knows their values
    known = {key: value for key, value in labels(row, base, "").items() if not key.endswith(not_known)}
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
