"""The few questions that starting a cluster asks its API server, by the standard library."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

SLOWEST = 10.0  # seconds for one answer


@dataclass(frozen=True)
class Answer:
    """What came back; `status` 0 means that nobody answered."""

    status: int
    text: str

    @property
    def object(self) -> dict[str, Any]:
        """The answer as Kubernetes object; empty when it is none."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class Client:
    """Talks as the user of a kubeconfig with embedded certificates."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = str(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as both:  # the ssl module takes a client's key only from a file
            both.write(base64.b64decode(user["client-certificate-data"]))
            both.write(base64.b64decode(user["client-key-data"]))
            both.flush()
            context.load_cert_chain(both.name)
        # A proxy that the environment names is for the world outside, not for this machine.
        self._open = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)).open

    def get(self, path: str) -> Answer:
        """The answer to GET."""
        return self._ask("GET", path, None)

    def post(self, path: str, content: object) -> Answer:
        """The answer to POST of an object."""
        return self._ask("POST", path, content)

    def _ask(self, method: str, path: str, content: object) -> Answer:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(  # noqa: S310 (the kubeconfig's server, always https)
            self.server + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with self._open(request, timeout=SLOWEST) as answer:
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode(errors="replace"))
        except OSError as error:
            return Answer(0, str(error))
