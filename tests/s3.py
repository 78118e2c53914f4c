"""A real S3 server for tests: moto's, which keeps its objects in memory."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster import ports

from tests.conftest import missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STARTS_WITHIN = 60.0
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request"}


@dataclass(frozen=True)
class Store:
    """A server with one bucket, named "bucket", and a directory of keys like a mounted Secret."""

    address: str
    port: int
    keys: Path

    def put(self, key: str, text: str) -> None:
        self.ask("PUT", f"/bucket/{key}", text)

    def get(self, key: str) -> str:
        return self.ask("GET", f"/bucket/{key}")

    def ask(self, method: str, path: str, body: str = "") -> str:
        connection = http.client.HTTPConnection(self.address, self.port, timeout=30)
        try:
            connection.request(method, path, body, SIGNED)
            answer = connection.getresponse()
            text = answer.read().decode()
            assert answer.status == 200, text
            return text
        finally:
            connection.close()


@contextmanager
def running(address: str, directory: Path) -> Iterator[Store]:
    """A server on this address, until the end of the `with` block."""
    for module in ("moto", "boto3"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
            missing(f"the Python package {module}", "make setup")
    port, = ports.free(address, 1)
    keys = directory / "keys"
    keys.mkdir()
    values = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "s3cret\n", "AWS_DEFAULT_REGION": "us-east-1",
              "AWS_ENDPOINT_URL": f"http://{address}:{port}"}  # fmt: skip
    for name, value in values.items():
        (keys / name).write_text(value)
    with (directory / "log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", address, "-p", str(port)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        store = Store(address, port, keys)
        deadline = time.monotonic() + STARTS_WITHIN
        while not _has_a_bucket(store):
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < deadline, (directory / "log").read_text()
            time.sleep(0.05)
        yield store
    finally:
        process.kill()
        process.wait()


def _has_a_bucket(store: Store) -> bool:
    with suppress(OSError):
        store.ask("PUT", "/bucket")
        return True
    return False
