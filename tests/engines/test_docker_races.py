"""Requests to the Docker engine that are under way when the job changes: nothing breaks, and nothing is left."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.engines import request
from mpiboot.engines.docker import client
from mpiboot.engines.docker.engine import DockerEngine
from mpiboot.engines.engine import CancelledError
from mpiboot.engines.inbox import Event, Inbox
from mpiboot.engines.output import Output
from mpiboot.engines.timeline.recorder import EventRecorder
from mpiboot.job.read import manifest, read
from tests.engines.test_elastic_docker import job as elastic_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


# The end of the process closes the connections of `mpiboot run`; here the garbage collector does.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Held:
    """The API of an engine, one request of which waits, once it is armed, until it is let go."""

    def __init__(self, request: str) -> None:
        self._api, self._request = client.connect(), request
        self.armed = False
        self.reached, self.let_go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever the API has)
        if name == self._request and self.armed:
            self.armed = False
            self.reached.set()
            assert self.let_go.wait(60)
        return getattr(self._api, name)


@pytest.fixture
def started(
    image: Callable[[str], str], name: str, tmp_path: Path, nothing_left: Callable[[], None]
) -> Iterator[Callable[[Held], DockerEngine]]:
    """Starts an elastic job of two workers on such an API."""
    engines: list[DockerEngine] = []

    def start(api: Held) -> DockerEngine:
        path = elastic_job(tmp_path, name, image("openmpi"), " 9")
        job = read.read(manifest.load(request.text_of(path), path)).job
        inbox: Inbox[Event] = Inbox()
        made = DockerEngine(api, job, inbox, Output(quiet=True), EventRecorder(wanted=False))  # type: ignore[arg-type]
        engines.append(made)
        made.start()
        return made

    yield start
    for _ in range(len(engines)):
        engines[0].remove()
    nothing_left()
    engines.clear()
    gc.collect()


def in_thread(work: Callable[[], None]) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (the test looks at it)
            errors.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    return thread, errors


def test_a_worker_may_be_removed_while_it_is_started_again(started: Callable[[Held], DockerEngine]) -> None:
    api = Held("inspect_container")
    engine = started(api)
    api.armed = True
    restart, errors = in_thread(lambda: engine.restart("worker-1"))
    assert api.reached.wait(60)
    scale, scale_errors = in_thread(lambda: engine.scale(1))
    scale.join(1)  # it may not take the worker away yet
    api.let_go.set()
    restart.join(60)
    scale.join(60)
    assert errors + scale_errors == []
    engine.restart("worker-1")  # too late: nothing happens
    assert engine.job.workers == 1


def test_the_removal_waits_for_a_container_that_is_being_created(
    started: Callable[[Held], DockerEngine], nothing_left: Callable[[], None]
) -> None:
    api = Held("create_container")
    engine = started(api)
    engine.api.remove_container(f"{engine.job.name}-worker-1", force=True)
    api.armed = True
    restart, _ = in_thread(lambda: engine.restart("worker-1"))
    assert api.reached.wait(60)
    remove, errors = in_thread(engine.remove)
    remove.join(1)
    assert remove.is_alive()
    api.let_go.set()
    remove.join(60)
    restart.join(60)
    assert errors == []
    nothing_left()
    with pytest.raises(CancelledError):
        engine.restart("worker-0")
