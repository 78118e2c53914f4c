"""The few questions that tests and measurements ask an API server, by the standard library."""

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
    from collections.abc import Iterator
    from pathlib import Path

SLOWEST = 60.0  # seconds for one answer; a busy machine takes long


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

    def patch(self, path: str, content: object) -> Answer:
        """The answer to PATCH, a merge of an object with what is there."""
        return self._ask("PATCH", path, content, "application/merge-patch+json")

    def delete(self, path: str) -> Answer:
        """The answer to DELETE; what the object owns is deleted after it."""
        return self._ask("DELETE", path, {"propagationPolicy": "Background"})

    def version(self, path: str) -> str:
        """The version of a collection at this moment."""
        return str(self.get(f"{path}?limit=1").object["metadata"]["resourceVersion"])

    def watch(self, path: str, since: str, limit: float) -> Iterator[tuple[str, dict[str, Any]]]:
        """The changes of a collection after a version, as (type, metadata), each when it comes, for `limit` seconds."""
        request = urllib.request.Request(  # noqa: S310
            f"{self.server}{path}?watch=1&resourceVersion={since}&timeoutSeconds={limit:.0f}",
            headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"})
        with self._open(request, timeout=limit + SLOWEST) as lines:
            for line in lines:
                change = json.loads(line)
                yield change["type"], change["object"]["metadata"]

    def _ask(self, method: str, path: str, content: object, form: str = "application/json") -> Answer:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(  # noqa: S310 (the kubeconfig's server, always https)
            self.server + path, data, {"Content-Type": form}, method=method)
        try:
            with self._open(request, timeout=SLOWEST) as answer:
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode(errors="replace"))
        except OSError as error:
            return Answer(0, str(error))
