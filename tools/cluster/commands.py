"""The commands of `tools/cluster`: each calls one function and prints what it did."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from debian import log

from . import api, build, images, node, processes, versions
from .errors import ClusterError
from .home import API, CACHE, NODE
from .lock import only_one
from .node import running

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING_RUNS = 3


def _up() -> int:
    began = time.monotonic()
    if node.up():
        log(f"the node is ready after {time.monotonic() - began:.1f} s")
    return _hint()


def _down() -> int:
    node.down()
    return 0


def _api_up() -> int:
    api.provide()
    with only_one(CACHE / "api.lock", "starting the API server"):
        if not running(API):
            began = time.monotonic()
            api.down(API)
            api.up(API)
            log(f"the API server is ready after {time.monotonic() - began:.1f} s")
    print(f"export KUBECONFIG={API.kubeconfig}")
    return 0


def _api_down() -> int:
    with only_one(CACHE / "api.lock", "ending the API server"):
        api.down(API)
    return 0


def _build(size: str) -> int:
    {"api": api.provide, "node": node.provide}.get(size, lambda: build.provide(*versions.SIZES[size]))()
    return 0


def _tidy() -> int:
    build.tidy()
    return 0


def _status() -> int:
    found = [home for home in (NODE, API) if home.path.exists()]
    for home in found:
        state = "runs" if running(home) else "broken: end it and start it again"
        print(f"{home.path.name}: {state}; KUBECONFIG={home.kubeconfig}")
        for process in processes.recorded(home):
            print(f"  {process.name:<24} process {process.pid:<8} {'runs' if process.runs() else 'ENDED'}")
    if not found:
        print("nothing runs; start it with: make cluster")
    return 0 if found and all(map(running, found)) else NOTHING_RUNS


def _kubeconfig() -> int:
    for home in (NODE, API):
        if running(home):
            print(home.kubeconfig)
            return 0
    print("nothing runs; start it with: make cluster", file=sys.stderr)
    return NOTHING_RUNS


def _load(*names: str) -> int:
    for name in names:
        images.load(name)
    return 0


def _hint() -> int:
    print(f"export KUBECONFIG={NODE.kubeconfig}")
    return 0


COMMANDS: dict[str, Callable[..., int]] = {
    "up": _up, "down": _down, "api-up": _api_up, "api-down": _api_down, "build": _build, "tidy": _tidy,
    "status": _status, "kubeconfig": _kubeconfig, "load": _load,
}
TAKES = {"build": lambda given: len(given) == 1 and given[0] in versions.SIZES, "load": bool}


def main(argv: list[str], usage: str) -> int:
    """The exit code of the command that `argv` names."""
    name, given = (argv[0], argv[1:]) if argv else ("", [])
    if name not in COMMANDS or not TAKES.get(name, lambda given: not given)(given):
        print(usage, file=sys.stderr)
        return 2
    try:
        return COMMANDS[name](*given)
    except ClusterError as error:
        log(str(error))
        return 1
    except KeyboardInterrupt:
        log("interrupted; the same command continues from here")
        return 130
