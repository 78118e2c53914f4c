"""`mpiReplicaSpecs` and `runPolicy` as v1 and v1alpha2 have them.

Operators of that time did not check manifests closely. A mistake with a clear meaning is a warning here, not an error.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from mpiboot.job.model import Replica
from mpiboot.job.read import podtemplate, v2beta1
from mpiboot.job.template import main_index
from mpiboot.job.values import kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mpiboot.job.model import RunPolicy
    from mpiboot.job.read.fields import Fields

CLEAN_POD_POLICIES: tuple[Literal["None", "Running", "All"], ...] = ("None", "Running", "All")

# ExitCode made the operator decide by the container's exit code; otherwise it was Never.
RESTART_POLICIES = {"Never": "Never", "OnFailure": "OnFailure", "ExitCode": "Never"}
WORKERS_RESTART_POLICIES = {**RESTART_POLICIES, "Always": "Always"}

# Commands that kept a worker alive for `kubectl exec`. Here a worker must run an SSH server instead.
IDLERS = (("sleep",), ("tail", "-f", "/dev/null"))


def launcher(replicas: Fields, main: str) -> Replica:
    fields = v2beta1.launcher_fields(replicas)
    if fields is None:
        return Replica(1, {}, "Never")
    return Replica(1, template(fields, main), restart_policy(fields, RESTART_POLICIES))


def worker(replicas: Fields, main: str) -> Replica | None:
    if replicas.get("Worker") is None:
        return None
    fields = replicas.mapping("Worker")
    count = fields.integer("replicas", minimum=1)
    if fields.get("replicas") is None:
        fields.note("replicas", "not given: 1 is used", "warning")
    serving = without_idling(fields, template(fields, main), main)
    return Replica(count or 1, serving, restart_policy(fields, WORKERS_RESTART_POLICIES))


def template(fields: Fields, main: str) -> Mapping[str, Any]:
    fields.known("replicas", "template", "restartPolicy")
    inner = fields.mapping("template")
    podtemplate.check(inner)
    names = [container.get("name") for container in containers(inner.value)]
    if main and names and main not in names:
        where = inner.inner(("spec", "containers"))
        where.note(None, f"none is called {main!r}, as mainContainer says: the first is used", "warning")
    return inner.value


def containers(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The containers of a template that may be faulty."""
    spec = template.get("spec")
    found = spec.get("containers") if isinstance(spec, dict) else None
    good = isinstance(found, list) and all(isinstance(container, dict) for container in found)
    return found if good and found else []


def restart_policy(fields: Fields, known: Mapping[str, str]) -> str:
    value = fields.get("restartPolicy")
    if value in (None, ""):
        return "Never"
    if isinstance(value, str) and value in known:
        return known[value]
    message = f"must be one of {', '.join(known)}; is {kind(value)}: Never is used"
    fields.note("restartPolicy", message, "warning")
    return "Never"


def without_idling(fields: Fields, template: Mapping[str, Any], main: str) -> Mapping[str, Any]:
    """The template of a worker; one that only sleeps has no command, so that it gets the SSH server."""
    found = containers(template)
    if not found:
        return template
    index = main_index(template, main)
    if not idles(found[index]):
        return template
    where = fields.inner(("template", "spec", "containers", index))
    message = "this worker only sleeps, so mpirun cannot reach it: it runs an SSH server instead"
    where.note("command", message, "warning")
    kept = {key: value for key, value in found[index].items() if key not in ("command", "args")}
    return {**template, "spec": {**template["spec"], "containers": [*found[:index], kept, *found[index + 1 :]]}}


def idles(container: Mapping[str, Any]) -> bool:
    """Whether a container only sleeps, directly or in a shell."""
    given = (container.get("command") or (), container.get("args") or ())
    if not all(isinstance(words, (list, tuple)) for words in given):
        return False
    words = [str(word) for part in given for word in part]
    if len(words) == 3 and words[1] == "-c":
        words = words[2].removeprefix("exec ").split()
    if not words or any(mark in word for word in words for mark in ";&|"):
        return False
    words[0] = PurePosixPath(words[0]).name
    return any(tuple(words[: len(idler)]) == idler for idler in IDLERS)


def run_policy(spec: Fields, *, backoff_limit: int | None = None) -> RunPolicy:
    """`runPolicy`; what it does not say stands at the top level, where v1alpha2 had it."""
    fields = spec.mapping("runPolicy")
    policy = v2beta1.run_policy(fields)
    if fields.get("cleanPodPolicy") in (None, ""):
        above = spec.choice("cleanPodPolicy", CLEAN_POD_POLICIES, "None")
        policy = replace(policy, clean_pod_policy=above)
    if policy.backoff_limit is None:
        policy = replace(policy, backoff_limit=backoff_limit)
    return policy
