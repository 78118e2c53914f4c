"""The plain manifests and the CRD in deploy/, made from data. `make manifests` writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiboot.controller.install.crd import crd
from mpiboot.controller.install.install import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "crd.yaml": lambda: [crd()],
    "operator.yaml": lambda: list(install()),
    "mpiboot.yaml": lambda: [crd(), *install()],
    "chart/crds/crd.yaml": lambda: [crd()],
}

HEAD = "# Made by `make manifests` from controller/; edits here are lost.\n"
LOADED = """\
# The operator's image here is one that you build and load into the nodes: no registry has it, and Kubernetes does not
# look for it (imagePullPolicy: Never). For a registry of yours, `mpiboot install --registry R` writes this file with
# the names and digests of your images.
"""


def text(objects: list[dict[str, Any]], head: str = HEAD) -> str:
    import yaml

    about = LOADED if any(each["kind"] == "Deployment" for each in objects) and head == HEAD else ""
    return head + about + yaml.safe_dump_all(objects, sort_keys=False, width=120)


def contents() -> Iterator[tuple[str, str]]:
    """Each file in deploy/ that is made, and its text."""
    return ((name, text(make())) for name, make in FILES.items())


def write(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    for name, content in contents():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
