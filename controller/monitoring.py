"""/healthz, /readyz and /metrics over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

# Prometheus' own content type; plain text/plain lacks the version.
METRICS = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}


class Monitoring:
    """Serves three texts. `unready` says what is missing, or nothing. That there is an answer at all is our health."""

    def __init__(self, unready: Callable[[], str], metrics: Callable[[], str]) -> None:
        app = web.Application()
        app.router.add_get("/healthz", lambda _: _answer(""))
        app.router.add_get("/readyz", lambda _: _answer(unready()))
        app.router.add_get("/metrics", lambda _: _text(metrics()))
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self, address: str, port: int) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port).start()

    async def close(self) -> None:
        await self._runner.cleanup()


async def _answer(trouble: str) -> web.Response:
    return web.Response(text=f"{trouble or 'ok'}\n", status=503 if trouble else 200)


async def _text(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers=METRICS)
