"""From submitting a job to its first rank on a real node, in turn with mpi-operator and with a plain pod.

The API server may refuse to give a kubelet the Secret of a pod that was just scheduled (docs/decisions/0010): that
costs any operator a second or two. The kubelet's log shows which starts that affects; separate rows show the others.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import _operators
from bench._cluster import NODE, client, create, log, namespace, pods, remove, wait
from bench._cluster import tested as versions  # noqa: F401 (bench/run.py calls it)
from bench._mpijobs import REPAIR, Kind, run
from bench._peers_image import SSHD, peers_image
from bench.harness import Row, in_turn

if TYPE_CHECKING:
    from bench._cluster import Client

OURS = "mpiboot/openmpi:latest"
TIMES = 20
KUBELET = NODE.logs / "kubelet.log"


@dataclass(frozen=True)
class Start:
    seconds: float
    refused: bool


def measure() -> list[Row]:
    theirs_image = peers_image()
    api = client(OURS, theirs_image)
    kind = Kind(OURS)
    repaired = Kind(theirs_image, REPAIR, SSHD)
    names = (f"job-{number}" for number in itertools.count())
    with (namespace(api, "ours") as here, namespace(api, "peer") as there, namespace(api, "plain") as plain,
          _operators.ours(here), _operators.peer(there)):

        starts: dict[str, list[Start]] = {here: [], there: []}

        def start(space: str, kind: Kind) -> float:
            known = KUBELET.stat().st_size
            outcome = run(api, space, kind, 2, next(names))
            starts[space].append(Start(outcome.first_rank - outcome.submitted, _refused(known)))
            return starts[space][-1].seconds

        for space, each in ((here, kind), (there, repaired)):
            start(space, each)  # the first start fills the caches
            starts[space].clear()
        ours, peer, pod = in_turn(
            TIMES, lambda: start(here, kind), lambda: start(there, repaired), lambda: _plain_pod(api, plain))
        smooth, smooth_peer = _smooth(starts[here]), _smooth(starts[there])
        what, peers = "submit to first rank, 2 workers", "mpi-operator repaired"
        note = (f"the kubelet was refused a Secret or ConfigMap in {TIMES - len(smooth)} of {TIMES} starts,"
                f" with mpi-operator in {TIMES - len(smooth_peer)}")
        return [Row(what, "s", ours, limit=0.65, beside=peer, beside_what=peers, note=note),
                Row(what, "s", ours, limit=2.0, beside=pod, beside_what="a plain pod"),
                Row(f"{what}, nothing refused", "s", smooth, beside=smooth_peer, beside_what=peers),
                Row(f"{what}, nothing refused", "s", smooth, beside=pod, beside_what="a plain pod")]


def _smooth(starts: list[Start]) -> list[float]:
    return [start.seconds for start in starts if not start.refused]


def _refused(since: int) -> bool:
    """Whether the Node authorizer refused a mount of a pod to the kubelet, in its log after this many bytes."""
    with KUBELET.open("rb") as log_file:
        log_file.seek(since)
        return any(b"no relationship found" in line and b"reflector" in line for line in log_file)


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
