"""The output of a launcher on a cluster. Connections break as a script wants it, so the script is the API server."""

from __future__ import annotations

import asyncio
import os
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from mpiboot.engines.kubernetes import launcher_output
from mpiboot.engines.kubernetes.launcher_output import LauncherOutput
from mpiboot.engines.kubernetes.log_position import LogPosition
from mpiboot.engines.kubernetes.namespace_jobs import JobId, NamespaceJobs
from mpiboot.engines.output import Output
from mpiboot.kube.api import Api
from mpiboot.kube.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

PATIENCE = 60.0
BEGAN = 1_700_000_000  # seconds since 1970, of the first line
CREATED = "2026-01-02T03:04:05Z"


@dataclass(frozen=True)
class Line:
    """A line of a log: when it was printed, in seconds and nanoseconds since the first, and its text."""

    seconds: int
    nanoseconds: int
    text: bytes

    @property
    def stamped(self) -> bytes:
        """As a kubelet shows it."""
        time = datetime.fromtimestamp(BEGAN + self.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        fraction = f"{self.nanoseconds:09d}".rstrip("0")
        return f"{time}{'.' + fraction if fraction else ''}Z ".encode() + self.text


def since(lines: list[Line], time: str) -> bytes:
    """The log from a time on, as an API server gives it: it knows whole seconds only."""
    first = datetime.fromisoformat(time).timestamp() - BEGAN if time else 0
    return b"".join(line.stamped for line in lines if line.seconds >= first)


def some_lines(rng: random.Random) -> list[Line]:
    """Lines of which many have the same second, and some the same nanosecond."""
    lines, nanoseconds = [], 0
    for _ in range(rng.randrange(1, 30)):
        nanoseconds += rng.choice([0, 1, 100_000_000, 400_000_000])
        text = bytes(rng.choice(b"ab \r.Z2") for _ in range(rng.randrange(12))) + b"\n"
        lines.append(Line(nanoseconds // 10**9, nanoseconds % 10**9, text))
    return lines


@pytest.mark.parametrize("seed", range(300))
def test_nothing_is_lost_or_repeated_wherever_a_log_breaks(seed: int) -> None:
    rng = random.Random(seed)
    lines = some_lines(rng)
    position, got, ended = LogPosition(), b"", False
    while not ended:
        log = since(lines, position.since)
        end = rng.choice([rng.randrange(len(log) + 1), len(log)])
        ended = end == len(log)
        at = 0
        while at < end:
            size = min(rng.randrange(1, 9), end - at)
            got += position.take(log[at : at + size])
            at += size
        position.reconnect()
    assert got == b"".join(line.text for line in lines)


def test_a_message_of_the_kubelet_has_no_time_and_is_shown() -> None:
    message = b"failed to create fsnotify watcher: too many open files\n"
    line = Line(1, 5, b"a\n")
    assert LogPosition().take(message + line.stamped + message) == message + b"a\n" + message


@dataclass
class Server:
    """A cluster with one job and the pod of its launcher, which has a sidecar."""

    lines: list[Line] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)  # bytes after which a connection for the log breaks, in turn
    refusals: list[int] = field(default_factory=list)  # statuses of answers to requests for the log, in turn
    ends_after: int = 0  # connections for the log after which the container has ended
    gone_after: int | None = None  # connections for the log after which the pod is gone
    asked: list[Mapping[str, str]] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return len(self.asked) >= self.ends_after

    def pod(self) -> dict[str, Any]:
        labels = {"training.kubeflow.org/job-name": "job", "training.kubeflow.org/job-role": "launcher"}
        state = {"terminated": {"exitCode": 3}} if self.ended else {"running": {}}
        statuses = [{"name": "sidecar", "state": {"terminated": {"exitCode": 0}}}, {"name": "main", "state": state}]
        return {
            "metadata": {"name": "job-launcher-x", "namespace": "default", "uid": "u1", "resourceVersion": "1",
                         "creationTimestamp": CREATED, "labels": labels},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "sidecar"}, {"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": statuses},
        }  # fmt: skip

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path.endswith("/mpijobs/job"):
            metadata = {"name": "job", "namespace": "default", "uid": "u0", "creationTimestamp": CREATED}
            return web.json_response({"metadata": metadata, "spec": {"mainContainer": "main"}})
        if path.endswith("/pods"):
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [self.pod()]})
        if self.gone_after is not None and len(self.asked) >= self.gone_after:
            return web.json_response({"reason": "NotFound"}, status=404)
        if not path.endswith("/log"):
            return web.json_response(self.pod())
        self.asked.append(request.query)
        if request.query.get("container") != "main":
            return web.json_response({"message": "a container name must be specified"}, status=400)
        if self.refusals:
            return web.json_response({"message": "scripted"}, status=self.refusals.pop(0))
        response = web.StreamResponse()
        await response.prepare(request)
        log = since(self.lines, request.query.get("sinceTime", ""))
        if self.cuts:
            await response.write(log[: self.cuts.pop(0)])
            assert request.transport
            request.transport.abort()
            return response
        await response.write(log)
        return response

    def run(self, use: Callable[[NamespaceJobs], Awaitable[None]]) -> None:
        async def main() -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()

            async def headers() -> Mapping[str, str]:
                return {}

            connection = Connection(f"http://127.0.0.1:{runner.addresses[0][1]}", None, headers, "default")
            try:
                async with asyncio.timeout(PATIENCE), Api(connection) as api:
                    await use(NamespaceJobs(api, "default"))
            finally:
                await runner.cleanup()

        asyncio.run(main())


@dataclass
class Printed:
    """What reached the terminal."""

    out: bytes
    err: str


@pytest.fixture
def output_of(tmp_path: Path) -> Callable[[Server], Printed]:
    def read(server: Server) -> Printed:
        async def use(jobs: NamespaceJobs) -> None:
            launchers = LauncherOutput(jobs, output)
            launchers.update(await jobs.look(JobId("job", "u0"), "launcher"))
            await launchers.end()

        paths = tmp_path / "out", tmp_path / "err"
        files = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in paths]
        output = Output(out=files[0], err=files[1])
        try:
            server.run(use)
        finally:
            for file in files:
                os.close(file)
        return Printed(paths[0].read_bytes(), paths[1].read_text())

    return read


LINES = [Line(number // 3, number % 3 * 1000, f"line {number}\n".encode()) for number in range(12)]
TEXT = b"".join(line.text for line in LINES)


def test_the_log_of_the_main_container_is_read(output_of: Callable[[Server], Printed]) -> None:
    printed = output_of(Server(LINES))
    assert printed == Printed(TEXT, "")


def test_the_exit_code_is_the_main_containers() -> None:
    async def use(jobs: NamespaceJobs) -> None:
        assert (await jobs.look(JobId("job", "u0"), "launcher")).exit_code() == 3

    Server(LINES).run(use)


def test_a_log_that_breaks_goes_on_where_it_was(output_of: Callable[[Server], Printed]) -> None:
    server = Server(LINES, cuts=[100, 5, 50, 200], ends_after=4)
    assert output_of(server) == Printed(TEXT, "")
    assert server.asked[1]["sinceTime"] == "2023-11-14T22:13:20Z"


def test_a_log_that_ends_before_its_container_is_read_again(output_of: Callable[[Server], Printed]) -> None:
    server = Server(LINES, ends_after=3)
    assert output_of(server) == Printed(TEXT, "")
    assert [query.get("follow") for query in server.asked] == ["true", "true", "true", None]


def test_a_log_that_cannot_be_read_for_a_while_is_waited_for(output_of: Callable[[Server], Printed]) -> None:
    printed = output_of(Server(LINES, refusals=[500, 502, 500], ends_after=3))
    assert printed.out == TEXT
    assert re.fullmatch("mpiboot: no output of job-launcher-x for now: scripted; mpiboot tries again\n", printed.err)


def test_a_log_that_stays_unreadable_is_given_up(
    output_of: Callable[[Server], Printed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher_output, "GIVES_UP_AFTER", 0.5)
    printed = output_of(Server(LINES, refusals=[500] * 100))
    assert printed.out == b""
    assert "mpiboot: the rest of the output of job-launcher-x cannot be read: scripted\n" in printed.err


def test_a_log_that_the_user_may_not_read_is_not_asked_for_again(output_of: Callable[[Server], Printed]) -> None:
    server = Server(LINES, refusals=[403] * 9)
    assert output_of(server).err == "mpiboot: no output of job-launcher-x: scripted\n"
    assert len(server.asked) == 1


def test_a_pod_that_is_deleted_while_it_runs_is_reported(output_of: Callable[[Server], Printed]) -> None:
    printed = output_of(Server(LINES, ends_after=9, gone_after=1))
    assert printed == Printed(TEXT, "mpiboot: no more output of job-launcher-x: the pod was deleted\n")
