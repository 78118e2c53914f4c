"""The texts of the repository, and what a check says about a line of one."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class File:
    """A tracked text file: its path from the root, with slashes, and what is in it."""

    path: str
    text: str


@dataclass(frozen=True)
class Problem:
    """One place that a check refuses, printed the way that editors and compilers print places."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def tracked(root: Path = ROOT) -> list[File]:
    """Every file that git tracks or would track, without links: what they lead to is here under its own name."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    paths = [root / name for name in sorted(set(listed.split("\0"))) if name]
    files = [path for path in paths if path.is_file() and not path.is_symlink()]
    return [File(path.relative_to(root).as_posix(), path.read_text()) for path in files]
