"""`python tools/checks`: what `make check` runs on texts. With names, `python tools/checks width words`: those alone.

Exit codes: 0 all is in order, 1 it is not: each place is a line, with its file and its line number.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from checks import width, words
from checks.files import tracked

CHECKS = {"width": width.check, "words": words.check}


def main(names: list[str]) -> int:
    """The exit code of the checks that are named, or of all."""
    if not set(names) <= set(CHECKS):
        print(f"usage: python tools/checks {' '.join(f'[{name}]' for name in CHECKS)}", file=sys.stderr)
        return 2
    code = 0
    for name in names or CHECKS:
        problems = [str(problem) for file in tracked() for problem in CHECKS[name](file)]
        if problems:
            print(*problems, f"check: {name}: {len(problems)} places to change", sep="\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
