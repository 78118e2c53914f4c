"""A registry just large enough for push and pull: what is pushed is kept in memory, by digest and by tag."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Registry(ThreadingHTTPServer):
    """On a free port of the loopback, where Docker accepts a registry without TLS."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs: dict[str, bytes] = {}
        self.uploads: dict[str, bytes] = {}
        self.manifests: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, bytes] = {}  # the same as bytes, by NAME/TAG and NAME/DIGEST

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


@contextmanager
def registry() -> Iterator[Registry]:
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def key(path: str) -> str:
    """`/v2/NAME/manifests/TAG` as `NAME/TAG`."""
    return re.sub("^/v2/|/manifests(?=/)", "", path)


class _Handler(BaseHTTPRequestHandler):
    server: Registry
    protocol_version = "HTTP/1.1"

    def _answer(self, code: int, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content_Length": "0", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_GET(self) -> None:
        if self.path == "/v2/":
            self._answer(200)
            return
        found = self.do_HEAD()
        if found is not None:
            self.wfile.write(found)

    def do_HEAD(self) -> bytes | None:
        if "/manifests/" in self.path:
            found = self.server.documents.get(key(self.path))
            kind = json.loads(found)["mediaType"] if found else ""
        else:
            found, kind = self.server.blobs.get(self.path.rsplit("/", 1)[1]), "application/octet-stream"
        if found is None:
            self._answer(404)
        else:
            digest = f"sha256:{hashlib.sha256(found).hexdigest()}"
            self._answer(200, Content_Length=str(len(found)), Content_Type=kind, Docker_Content_Digest=digest)
        return found

    def do_POST(self) -> None:
        self._body()
        name = f"{self.path.rstrip('/')}/{len(self.server.uploads)}"
        self.server.uploads[name] = b""
        self._answer(202, Location=name, Range="0-0")

    def do_PATCH(self) -> None:
        self.server.uploads[self.path] += self._body()
        # The last byte's number: Docker takes the layer's size from it, and containerd refuses a wrong one.
        self._answer(202, Location=self.path, Range=f"0-{len(self.server.uploads[self.path]) - 1}")

    def do_PUT(self) -> None:
        body = self._body()
        path, _, query = self.path.partition("?")
        if "/manifests/" in path:
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            self.server.manifests[key(path)] = json.loads(body)
            self.server.documents[key(path)] = self.server.documents[f"{key(path).rsplit('/', 1)[0]}/{digest}"] = body
            self._answer(201, Docker_Content_Digest=digest)
            return
        content = self.server.uploads.pop(path) + body
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        wanted = query.partition("digest=")[2].replace("%3A", ":")
        self.server.blobs[digest] = content
        self._answer(201 if digest == wanted else 400, Docker_Content_Digest=digest)

    def log_message(self, *_: object) -> None:
        """Nothing: a passing test is quiet."""
