"""`deploy/`: all that an installation needs, made from data. `make manifests` writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.controller.crd import crd
from mpiboot.controller.install import install

if TYPE_CHECKING:
    from collections.abc import Callable

FILES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "crd.yaml": lambda: [crd()],
    "operator.yaml": lambda: list(install()),
    "mpiboot.yaml": lambda: [crd(), *install()],
}

HEAD = "# Made by `make manifests` from controller/; edits here are lost.\n"


def text(objects: list[dict[str, Any]]) -> str:
    import yaml

    return HEAD + yaml.safe_dump_all(objects, sort_keys=False, width=120)


def write(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    for name, make in FILES.items():
        (directory / name).write_text(text(make()))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
