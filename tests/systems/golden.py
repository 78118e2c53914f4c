"""Files with the expected output of commands. To change them, set MPIBOOT_WRITE_GOLDEN=1 and read the difference."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def check(path: Path, printed: str) -> None:
    """Compare the output with the file; with MPIBOOT_WRITE_GOLDEN=1 write the file first."""
    if os.environ.get("MPIBOOT_WRITE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8"), f"{path.name}: see {__name__}"
