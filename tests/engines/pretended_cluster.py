"""A cluster without nodes: it stores one MPIJob, and its launcher is a process of this machine.

Exec and attach work as a kubelet does them, with real processes behind them; the connections can be cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NEW, OLD = "v5.channel.k8s.io", "v4.channel.k8s.io"
CREATED = "2026-01-02T03:04:05Z"


class Pretended:
    """The API server, in a thread of its own. `launcher` is the command behind the pod; it starts with the job."""

    def __init__(self, launcher: list[str], environment: Mapping[str, str], cwd: Path) -> None:
        self.launcher, self.environment, self.cwd = launcher, dict(environment), cwd
        self.protocols = [NEW, OLD]
        self.cut_after: list[int] = []  # an exec is cut after so many bytes of its stdin, one for each
        self.cut_answers_after: list[int] = []  # bytes of an exec's stdout
        self.forbidden: set[str] = set()  # subresources
        self.waiting: dict[str, str] = {}  # of the launcher's container, which does not start then
        self.answers = 0  # lists of pods
        self.job: dict[str, Any] = {}
        self.deleted = threading.Event()
        self.logged = self.unfinished = b""
        self._process: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._watchers: list[asyncio.Queue[tuple[int, bytes]]] = []
        self._given: asyncio.Event = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port: int = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(30)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> int:
        app = web.Application(client_max_size=2**24)
        jobs = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
        pods = "/api/v1/namespaces/default/pods"
        app.add_routes([
            web.post(jobs, self._create), web.get(f"{jobs}/{{name}}", self._get),
            web.delete(f"{jobs}/{{name}}", self._delete), web.get(pods, self._list),
            web.get(f"{pods}/{{name}}", self._pod), web.get(f"{pods}/{{name}}/log", self._log),
            web.get(f"{pods}/{{name}}/exec", self._exec), web.get(f"{pods}/{{name}}/attach", self._attach),
        ])  # fmt: skip
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def _close(self) -> None:
        if self._process:
            self._kill()
            await self._process.wait()
        await self._runner.cleanup()

    def _kill(self) -> None:
        """End all processes of the container, as a kubelet does: one that reads may hold its output open."""
        assert self._process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _create(self, request: web.Request) -> web.Response:
        self.job = await request.json()
        self.job["metadata"] |= {"uid": "u1", "creationTimestamp": CREATED}
        if not self.waiting:
            await self._start()
        return web.json_response(self.job, status=201)

    async def _start(self) -> None:
        if self._process:  # of an earlier job
            self._kill()
            await self._process.wait()
            await asyncio.gather(*self._readers)
        self.logged = self.unfinished = b""
        launcher = self.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
        given = {each["name"]: each["value"] for each in launcher.get("env", ()) if each["name"] == "MPIBOOT_GIVE"}
        self._process = await asyncio.create_subprocess_exec(
            *self.launcher, cwd=self.cwd, env={**os.environ, **self.environment, **given},
            stdin=asyncio.subprocess.PIPE if launcher.get("stdin") else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._readers = [
            asyncio.create_task(self._read(channel, reader))
            for channel, reader in ((1, self._process.stdout), (2, self._process.stderr))
        ]

    async def _read(self, channel: int, reader: asyncio.StreamReader | None) -> None:
        assert reader
        rest = b""
        while data := await reader.read(2**16):
            *lines, rest = (rest + data).split(b"\n")  # a log has whole lines
            self.logged += b"".join(line + b"\n" for line in lines)
            for each in self._watchers:
                each.put_nowait((channel, data))
        self.unfinished += rest

    def _state(self) -> dict[str, Any]:
        if self.waiting:
            return {"waiting": self.waiting}
        assert self._process
        code = self._process.returncode
        if code is None:
            return {"running": {"startedAt": CREATED}}
        return {"terminated": {"exitCode": code if code >= 0 else 128 - code}}

    async def _get(self, _: web.Request) -> web.Response:
        if not self.job:
            return web.json_response({"code": 404}, status=404)
        state = self._state()
        if ended := state.get("terminated"):
            kind = "Failed" if ended["exitCode"] else "Succeeded"
            self.job["status"] = {"state": kind, "conditions": [{"type": kind, "status": "True"}]}
        return web.json_response(self.job)

    async def _delete(self, _: web.Request) -> web.Response:
        job, self.job = self.job, {}
        if self._process and self._process.returncode is None:
            self._process.terminate()
        self.deleted.set()
        return web.json_response(job)

    def _launcher_pod(self) -> dict[str, Any]:
        state = self._state()
        phase = "Running" if "running" in state else "Pending" if "waiting" in state else "Succeeded"
        if (state.get("terminated") or {}).get("exitCode"):
            phase = "Failed"
        name = self.job["metadata"]["name"] if self.job else "gone"
        labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": "launcher"}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-launcher", "uid": "o1", "controller": True}
        image = self.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["image"]
        return {
            "metadata": {"name": "job-launcher-x", "namespace": "default", "uid": "p1", "labels": labels,
                         "resourceVersion": "1", "creationTimestamp": CREATED, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "launcher"}], "restartPolicy": "Never"},
            "status": {"phase": phase, "containerStatuses": [
                {"name": "launcher", "image": image, "restartCount": 0, "state": state}]},
        }  # fmt: skip

    async def _list(self, _: web.Request) -> web.Response:
        self.answers += 1
        items = [self._launcher_pod()] if self.job else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async def _pod(self, _: web.Request) -> web.Response:
        if not self.job:
            return web.json_response({"code": 404}, status=404)
        return web.json_response(self._launcher_pod())

    async def _log(self, request: web.Request) -> web.StreamResponse:
        """The whole log, when the launcher has ended: nothing here needs more."""
        if request.query.get("follow") and self._process:
            await self._process.wait()
            await asyncio.gather(*self._readers)
        lines = (self.logged + self.unfinished).splitlines(keepends=True)
        times = (f"2026-01-02T03:04:05.{number:09}Z ".encode() for number in range(len(lines)))
        return web.Response(body=b"".join(time + line for time, line in zip(times, lines, strict=False)))

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        if "exec" in self.forbidden:
            return web.json_response({"code": 403, "message": "no"}, status=403)
        socket = await self._upgraded(request)
        words = request.query.getall("command")
        process = await asyncio.create_subprocess_exec(
            *words, cwd=self.cwd, env={**os.environ, **self.environment}, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        cut_after = self.cut_after.pop(0) if self.cut_after else 2**62

        async def answers() -> None:
            assert process.stdout
            assert process.stderr
            for channel, reader in ((1, process.stdout), (2, process.stderr)):
                while data := await reader.read(2**16):
                    await socket.send_bytes(bytes([channel]) + data)
                    if self.cut_answers_after and "give" in words and channel == 1:
                        self.cut_answers_after[0] -= len(data)
                        if self.cut_answers_after[0] < 0:
                            self.cut_answers_after.pop()
                            process.kill()
                            assert request.transport
                            request.transport.abort()
            await socket.send_bytes(b"\x03" + json.dumps(_status(await process.wait())).encode())
            await socket.close()

        answering = asyncio.create_task(answers())
        assert process.stdin
        if await self._feed(socket, process.stdin, cut_after):
            answering.cancel()
            process.stdin.close()
            assert request.transport
            request.transport.abort()
        await asyncio.wait([answering])
        return socket

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        if "attach" in self.forbidden:
            return web.json_response({"code": 403, "message": "no"}, status=403)
        process = self._process
        assert process
        socket = await self._upgraded(request)
        queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        if request.query["stdout"] == "true":
            self._watchers.append(queue)

        async def show() -> None:
            while True:
                channel, data = await queue.get()
                await socket.send_bytes(bytes([channel]) + data)
                if self.cut_after:
                    self.cut_after.pop()
                    assert request.transport
                    request.transport.abort()

        async def ends() -> None:
            await process.wait()
            await asyncio.gather(*self._readers)
            while not queue.empty():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            await socket.send_bytes(b"\x03" + json.dumps(_status(0)).encode())
            await socket.close()

        tasks = [asyncio.create_task(show()), asyncio.create_task(ends())]
        if request.query["stdin"] == "true" and process.stdin:
            await self._feed(socket, process.stdin, 2**62)
            process.stdin.close()  # stdinOnce
        else:
            async for _ in socket:
                pass
        if not socket.closed:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        return socket

    async def _feed(self, socket: web.WebSocketResponse, stdin: asyncio.StreamWriter, cut_after: int) -> bool:
        """Whether it was cut. Otherwise the other side has ended its stream, or the connection."""
        came = 0
        async for message in socket:
            if message.type is not WSMsgType.BINARY:
                continue
            if message.data[:2] == b"\xff\x00":
                stdin.close()
                async for _ in socket:
                    pass
                return False
            data = message.data[1:]
            came += len(data)
            try:
                stdin.write(data[: len(data) - max(0, came - cut_after)])
                await stdin.drain()
            except ConnectionError:
                pass
            if came >= cut_after:
                return True
        return False

    async def _upgraded(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=self.protocols, max_msg_size=0)
        await socket.prepare(request)
        return socket


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
