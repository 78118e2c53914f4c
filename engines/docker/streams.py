"""A container's output while it runs, and its end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, NotFound
from requests.exceptions import RequestException

from mpiboot.engines.inbox import Broke, Ended
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from docker import APIClient

    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.output import Output

GONE = 137


class EngineGoneError(UserError):
    """The engine went away under a running job."""

    exit_code = 1


def follow(api: APIClient, container: str, who: str, output: Output, inbox: Inbox[Event]) -> threading.Thread:
    """Attach to a container that is about to start; a thread passes on its output and, after all of it, its end."""
    frames = api.attach(container, stdout=True, stderr=True, stream=True, logs=False, demux=True)

    def read() -> None:
        try:
            for out, err in frames:
                if out:
                    output.feed(who, "out", out)
                if err:
                    output.feed(who, "err", err)
            code = int(api.wait(container, timeout=None)["StatusCode"])  # the output may close before the program ends
            output.finish(who)
            inbox.put(Ended(who, code, _reason(api, container, code)))
        except NotFound:
            inbox.put(Ended(who, GONE, "its container was removed"))
        except (APIError, RequestException, OSError) as error:
            text = f"the Docker engine stopped answering while {who} was running ({error})"
            inbox.put(Broke(EngineGoneError(f"{text}; when it is back, see what is left: mpiboot ps")))
        finally:
            output.finish(who)

    thread = threading.Thread(target=read, name=f"output of {who}", daemon=True)
    thread.start()
    return thread


def _reason(api: APIClient, container: str, code: int) -> str:
    if code == 0:
        return ""
    try:
        state: dict[str, Any] = api.inspect_container(container)["State"]
    except NotFound:
        return "its container was removed"
    if state.get("OOMKilled"):
        return "it needed more memory than its limit allows"
    return str(state.get("Error") or "")
