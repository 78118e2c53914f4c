"""A cluster that takes a job and does not say so. The script of an API server is enough for that."""

from __future__ import annotations

import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.engines.conftest import Running


class Cluster(ThreadingHTTPServer):
    """Stores MPIJobs. It answers to the creation of one only when it is allowed to."""

    daemon_threads = True

    def __init__(self) -> None:
        self.jobs: dict[str, Any] = {}
        self.answers = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Cluster

    def do_POST(self) -> None:
        job = self._body()
        job["metadata"] |= {"uid": "u1", "creationTimestamp": "2026-01-02T03:04:05Z"}
        self.server.jobs[job["metadata"]["name"]] = job
        self.server.answers.wait(60)
        self._answer(201, job)

    def do_GET(self) -> None:
        job = self.server.jobs.get(self.path.rpartition("/")[2])
        self._answer(200 if job else 404, job or {"code": 404})

    def do_DELETE(self) -> None:
        body = self._body()
        job = self.server.jobs.pop(self.path.rpartition("/")[2])
        assert body["preconditions"]["uid"] == job["metadata"]["uid"]
        self._answer(200, job)

    def _body(self) -> Any:  # noqa: ANN401 (JSON)
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def _answer(self, status: int, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with Cluster() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "scripted", "users": [],
            "clusters": [{"name": "scripted", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "contexts": [{"name": "scripted", "context": {"cluster": "scripted", "user": ""}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield server
        server.answers.set()
        server.shutdown()
        thread.join()


def until_created(name: str, cluster: Cluster, running: Running) -> None:
    deadline = time.monotonic() + 60
    while name not in cluster.jobs:
        assert time.monotonic() < deadline, running.err
        time.sleep(0.02)


def test_a_job_whose_creation_was_not_confirmed_is_deleted(
    cluster: Cluster, start: Callable[..., Running], manifest: Callable[..., str], name: str
) -> None:
    running = start("run", "--engine", "kubernetes", "-f", manifest("true", "image"))
    until_created(name, cluster, running)
    running.process.send_signal(signal.SIGTERM)
    assert running.end() == 143
    assert cluster.jobs == {}
    assert "Traceback" not in "".join(running.err)


def test_a_job_of_the_same_name_that_another_user_made_stays(
    cluster: Cluster, start: Callable[..., Running], manifest: Callable[..., str], name: str
) -> None:
    running = start("run", "--engine", "kubernetes", "-f", manifest("true", "image"))
    until_created(name, cluster, running)
    theirs = {"metadata": {"name": name, "uid": "u2"}}
    cluster.jobs[name] = theirs
    running.process.send_signal(signal.SIGTERM)
    assert running.end() == 143
    assert cluster.jobs == {name: theirs}
