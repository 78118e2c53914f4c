"""A container's output while it runs, and its end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from docker.errors import NotFound

from mpiboot.engines.docker import faults
from mpiboot.engines.inbox import Broke, Ended
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.output import Output

GONE = 137


def follow(api: APIClient, container: str, who: str, output: Output, inbox: Inbox[Event]) -> threading.Thread:
    """Attach to a container that is about to start; a thread passes on its output and, after all of it, its end."""
    frames = api.attach(container, stdout=True, stderr=True, stream=True, logs=False, demux=True)

    def read() -> None:
        try:
            with faults.of_engine(f"{who} was running"):
                for out, err in frames:
                    if out:
                        output.feed(who, "out", out)
                    if err:
                        output.feed(who, "err", err)
                inbox.put(_end(api, container, who))
        except UserError as error:
            inbox.put(Broke(error))
        finally:
            output.finish(who)

    thread = threading.Thread(target=read, name=f"output of {who}", daemon=True)
    thread.start()
    return thread


def _end(api: APIClient, container: str, who: str) -> Ended:
    try:
        # The output may close before the program ends.
        code = int(api.wait(container, timeout=None)["StatusCode"])
        return Ended(who, code, _reason(api, container, code))
    except NotFound:
        return Ended(who, GONE, "its container was removed")


def _reason(api: APIClient, container: str, code: int) -> str:
    if code == 0:
        return ""
    state: dict[str, Any] = api.inspect_container(container)["State"]
    if state.get("OOMKilled"):
        return "it needed more memory than its limit allows"
    return str(state.get("Error") or "")
