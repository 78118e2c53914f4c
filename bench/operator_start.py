"""From submitting a job to its first rank on a real node, in turn with mpi-operator and with a plain pod."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from bench import _operators
from bench._cluster import client, create, log, namespace, pods, remove, wait
from bench._cluster import tested as versions  # noqa: F401 (what the runner asks for)
from bench._mpijobs import REPAIR, Kind, run
from bench._peers_image import SSHD, peers_image
from bench.harness import Row, in_turn

if TYPE_CHECKING:
    from bench._cluster import Client

OURS = "mpiboot/openmpi:latest"
TIMES = 20


def measure() -> list[Row]:
    theirs = peers_image()
    api = client(OURS, theirs)
    kind = Kind(OURS)
    repaired = Kind(theirs, REPAIR, SSHD)
    names = (f"job-{number}" for number in itertools.count())
    with (namespace(api, "ours") as here, namespace(api, "peer") as there, namespace(api, "plain") as plain,
          _operators.ours(here), _operators.peer(there)):

        def start(space: str, kind: Kind) -> float:
            outcome = run(api, space, kind, 2, next(names))
            return outcome.first_rank - outcome.submitted

        for space, each in ((here, kind), (there, repaired)):
            start(space, each)  # the first one finds cold caches
        ours, peer, pod = in_turn(
            TIMES, lambda: start(here, kind), lambda: start(there, repaired), lambda: _plain_pod(api, plain))
        what = "submit to first rank, 2 workers"
        return [Row(what, "s", ours, limit=0.65, beside=peer, beside_what="mpi-operator repaired"),
                Row(what, "s", ours, limit=2.0, beside=pod, beside_what="a plain pod")]


def _plain_pod(api: Client, space: str) -> float:
    container = {"name": "main", "image": OURS, "imagePullPolicy": "IfNotPresent", "command": ["date", "+%s.%N"]}
    path = f"/api/v1/namespaces/{space}/pods"
    begun = time.time()
    create(api, path, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": {
        "restartPolicy": "Never", "containers": [container]}})
    wait("the plain pod's end", lambda: pods(api, space)[0]["status"]["phase"] == "Succeeded")
    printed = float(log(api, space, "plain", "main")[0][1])
    remove(api, f"{path}/plain", space)
    return printed - begun
