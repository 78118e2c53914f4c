"""`deploy/`: all that an installation needs, made from data. `make manifests` writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.controller import chart
from mpiboot.controller.crd import crd
from mpiboot.controller.install import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "crd.yaml": lambda: [crd()],
    "operator.yaml": lambda: list(install()),
    "mpiboot.yaml": lambda: [crd(), *install()],
}

HEAD = "# Made by `make manifests` from controller/; edits here are lost.\n"


def text(objects: list[dict[str, Any]]) -> str:
    import yaml

    return HEAD + yaml.safe_dump_all(objects, sort_keys=False, width=120)


def contents() -> Iterator[tuple[str, str]]:
    """Each file below deploy/ that is made, and what is in it."""
    yield from ((name, text(make())) for name, make in FILES.items())
    yield "chart/Chart.yaml", text([chart.description()])
    yield "chart/crds/crd.yaml", text([crd()])
    yield from ((f"chart/templates/{name}", HEAD + chart.text(objects)) for name, objects in chart.templates().items())


def write(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    for name, content in contents():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
