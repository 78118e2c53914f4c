"""Run the benchmarks: every module in this folder that has `measure()`. See README.md."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import statistics
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
# As a script: import the modules from the root, so that their bare names do not hide other modules.
sys.path[0] = str(HERE.parent)

from bench.harness import Row, Unavailable  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

RESULTS = HERE / "results"
BUSY = 0.5  # processes that are ready to run, for each processor: with more, other programs disturb the measurement
HELPERS = {"run", "harness"}


def main(argv: Sequence[str]) -> int:
    """0 if everything could be measured, even if goals were missed; 1 if a module failed."""
    known = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in HELPERS and path.stem[0] != "_")
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure, default all: {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and measure nothing")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}")
    modules = {name: importlib.import_module(f"bench.{name}") for name in options.names or known}
    if options.list:
        for name, module in modules.items():
            print(f"{name:<12} {(module.__doc__ or '').splitlines()[0]}")
        return 0
    return max([_measure(name, module) for name, module in modules.items()], default=0)


def _measure(name: str, module: ModuleType) -> int:
    print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
    begun, load = time.monotonic(), os.getloadavg()[0]
    try:
        rows: list[Row] = module.measure()
        versions: dict[str, str] = module.versions() if hasattr(module, "versions") else {}
    except Unavailable as missing:
        print(f"  not measured: this machine lacks {missing}")
        return 0
    except Exception:  # noqa: BLE001  # the other modules must still be measured
        traceback.print_exc()
        return 1
    for line in table(rows):
        print(f"  {line}")
    if load > BUSY * len(os.sched_getaffinity(0)):
        print(f"  (the machine was busy at the start, load {load:.1f}: the times are longer than on a quiet machine)")
    _keep(name, rows, versions, {"took_seconds": round(time.monotonic() - begun, 1), "load_before": round(load, 1)})
    return 0


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as aligned lines."""
    cells = [("", "median", "spread", "n", "beside", "ratio", "goal", "")]
    for row in rows:
        of = "x" if row.beside else f" {row.unit}"
        cells.append(
            (
                row.what,
                f"{row.median:.4g} {row.unit}",
                f"{min(row.samples):.4g} to {max(row.samples):.4g}",
                str(len(row.samples)),
                f"{statistics.median(row.beside):.4g} {row.unit}, {row.beside_what}" if row.beside else "",
                f"{row.ratio:.2f}" if row.ratio is not None else "",
                f"<= {row.limit:g}{of}" if row.limit is not None else "",
                {True: "met", False: "MISSED", None: ""}[row.met],
            )
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return lines + [f"({row.what}: {row.note})" for row in rows if row.note]


def _keep(name: str, rows: Sequence[Row], versions: dict[str, str], run: dict[str, float]) -> None:
    """Write the raw samples and what they depend on. The last results are replaced only by complete ones."""
    results = {
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        **run,
        "machine": machine(),
        "versions": {"python": platform.python_version(), "kernel": platform.release(), **versions},
        "rows": [{**asdict(row), "median": row.median, "ratio": row.ratio, "met": row.met} for row in rows],
    }
    RESULTS.mkdir(exist_ok=True)
    fresh = RESULTS / f".{name}.json"
    fresh.write_text(json.dumps(results, indent=1) + "\n")
    fresh.replace(RESULTS / f"{name}.json")


def machine() -> dict[str, str | int]:
    """The properties of the machine that the numbers depend on, without its name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cpus = len(os.sched_getaffinity(0))
    return {"cpus": cpus, "cpu": models[0] if models else platform.machine(), "memory_gib": round(memory / 2**30)}


if __name__ == "__main__":
    # On both signals, also in the background, Python unwinds, and what the benchmarks started ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
