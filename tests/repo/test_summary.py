"""A run of the tests ends with what was not tested, why, and the command that changes that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_last_lines_are_the_summary_of_what_was_left_out() -> None:
    # All tests of this file are skipped before they start anything.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/repo/test_fresh_machine.py"]
    ours = ("CI", "MPIBOOT_TEST_FRESH", "PYTEST_")  # settings of this run, not of that one
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    lines = list(filter(None, done.stdout.splitlines()))
    title = next(number for number, line in enumerate(lines) if " not tested on this machine " in line)
    assert lines[title + 1] == "2 of 2 tests did not run:"
    assert "run it with: MPIBOOT_TEST_FRESH=1 make test" in lines[title + 2]
    assert "2 skipped" in lines[title + 3]
    assert len(lines) == title + 4
