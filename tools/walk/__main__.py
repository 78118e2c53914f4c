"""Print which files a job passes on its way, in order: `.venv/bin/python tools/walk [--tree FOLDER]`.

Two walks are traced, each in a real process: from `kubectl apply` of an MPIJob to the request that creates its first
pod, and from the start of `mpiboot launch` to the start of mpirun. A file counts when one of its functions is called.
`--tree` traces another work tree with this environment's Python: git worktree add FOLDER COMMIT.

Exit codes: 0 printed, 1 a walk did not come to its end (its output is printed).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from walk.walks import WalkError, launcher, operator

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the work tree to trace (default: this one)")
    tree = parser.parse_args().tree.resolve()
    for title, walk in (("kubectl apply to the first pod", operator), ("mpiboot launch to mpirun", launcher)):
        with tempfile.TemporaryDirectory(prefix="mpiboot-walk-") as folder:
            try:
                files = walk(tree, Path(folder))
            except WalkError as error:
                print(f"walk: {title}: {error}", file=sys.stderr)
                return 1
        print(f"{title}: {len(files)} files", *(f"  {file}" for file in files), "", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
