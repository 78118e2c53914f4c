"""The build context: the Dockerfile, its steps and this mpiboot, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import mpiboot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RECIPES = Path(__file__).parent.parent
PARTS = ("Dockerfile", "kit", "nss")

# Layers keep the time of each file, so it must not be the time of the build.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1735689600"))


@contextmanager
def build_context() -> Iterator[Path]:
    """The folder of a build. The context manager removes it at the end, also after an error."""
    with tempfile.TemporaryDirectory(prefix="mpiboot-images-") as folder:
        assemble(Path(folder))
        yield Path(folder)


def assemble(folder: Path) -> None:
    """Fill `folder` from the installed package: a clone, whose package holds links, and a wheel give the same files."""
    package = Path(mpiboot.__file__).parent
    is_own_file = _own_file_filter(package)
    for part in PARTS:
        _copy(RECIPES / part, folder / part, is_own_file)
    _copy(package, folder / "package" / "mpiboot", is_own_file)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (EPOCH, EPOCH))


def _copy(source: Path, target: Path, is_own_file: Callable[[Path], bool]) -> None:
    """Copy a file, or all files below a folder that belong to mpiboot. The function follows links."""
    files = [Path(top, name) for top, _, names in os.walk(source, followlinks=True) for name in names]
    for path in files or [source]:
        if is_own_file(path):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _own_file_filter(package: Path) -> Callable[[Path], bool]:
    """A test for mpiboot's own files, without caches and leftovers: pip lists the own files, or git in a clone."""
    for listed in (_listed_by_pip, _listed_by_git):
        files = listed(package)
        if (package / "__init__.py").resolve() in files:
            return lambda path: path.resolve() in files
    return lambda path: not any(part.startswith((".", "__pycache__")) for part in path.relative_to(package).parts)


def _listed_by_pip(package: Path) -> set[Path]:
    """The files of an installed wheel, without the compiled files that pip adds to the list."""
    with suppress(metadata.PackageNotFoundError):
        listed = metadata.files("mpiboot") or []
        paths = [Path(str(file.locate())) for file in listed if file.suffix != ".pyc"]
        return {path.resolve() for path in paths if package.resolve() in path.resolve().parents}
    return set()


def _listed_by_git(package: Path) -> set[Path]:
    """The files of a clone that git tracks or does not ignore."""
    root = package.resolve().parents[1]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    except OSError:  # there is no git
        return set()
    return {(root / name).resolve() for name in done.stdout.split("\0") if name}
