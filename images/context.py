"""What a build sends to the engine: the Dockerfile, its steps and this mpiboot, gathered in a temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import mpiboot

if TYPE_CHECKING:
    from collections.abc import Iterator

RECIPES = Path(__file__).parent
PARTS = ("Dockerfile", "kit", "nss")

# Layers keep the time of each file, so it must not be the time of the build.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1735689600"))


@contextmanager
def build_context() -> Iterator[Path]:
    """The folder of a build, removed at the end, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="mpiboot-images-") as folder:
        assemble(Path(folder))
        yield Path(folder)


def assemble(folder: Path) -> None:
    """Fill `folder` from the installed package: a clone, where it is links, and a wheel give the same files."""
    for part in PARTS:
        source = RECIPES / part
        if source.is_dir():
            shutil.copytree(source, folder / part, dirs_exist_ok=True)
        else:
            shutil.copy(source, folder / part)
    package = Path(mpiboot.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(package, folder / "package" / "mpiboot", ignore=ignore, dirs_exist_ok=True)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (EPOCH, EPOCH))
