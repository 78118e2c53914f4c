"""The benchmarks can begin: each one's imports are there. What they measure is `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from messages.texts import texts

from bench._launch import WAITS

REPOSITORY = Path(__file__).resolve().parents[2]
BENCHMARKS = sorted((REPOSITORY / "bench").glob("*.py"))


def test_every_file_of_bench_imports() -> None:
    names = [f"bench.{path.stem}" for path in BENCHMARKS]
    script = f"import importlib, sys; sys.path.insert(0, '.')\nfor name in {names}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_benchmark_is_listed_with_what_it_measures() -> None:
    listed = subprocess.run([sys.executable, "bench/run.py", "--list"], cwd=REPOSITORY, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0]: line.split()[1:] for line in listed.stdout.splitlines()}
    assert set(lines) == {path.stem for path in BENCHMARKS if "def measure()" in path.read_text()}
    assert all(lines.values())


def test_the_launcher_logs_what_the_benchmarks_wait_for() -> None:
    files = (REPOSITORY / "bootstrap" / "wait").glob("*.py")
    assert [text for file in files for text in texts(file.read_text()) if WAITS in text]
