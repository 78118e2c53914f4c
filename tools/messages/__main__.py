"""`python tools/messages`: write docs/reference/messages.md from the code. `make reference` runs it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from messages.page import PAGE, text

if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text())
