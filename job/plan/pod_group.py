"""The PodGroup of a job: what a gang scheduler has to know about its pods."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mpiboot.job import names
from mpiboot.job.errors import UserError
from mpiboot.job.gang import VOLCANO
from mpiboot.job.plan import objects
from mpiboot.job.quantity import as_quantity, number
from mpiboot.job.template import spec_of
from mpiboot.job.values import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpiboot.job.arrangement import Arrangement
    from mpiboot.job.gang import Gang
    from mpiboot.job.model import Job
    from mpiboot.job.plan.pods import Additions

FIELDS = ("minMember", "minResources", "queue", "priorityClassName", "scheduleTimeoutSeconds")
QUEUE = "scheduling.volcano.sh/queue-name"  # an annotation of jobs


def manifest(arrangement: Arrangement, gang: Gang) -> dict[str, Any]:
    """The PodGroup. Its name is the job's, as with mpi-operator."""
    job = arrangement.job
    return {
        "apiVersion": gang.scheduler.api_version,
        "kind": "PodGroup",
        "metadata": objects.metadata(job, names.pod_group(job.name), names.object_labels(job)),
        "spec": spec(arrangement, gang),
    }


def spec(arrangement: Arrangement, gang: Gang) -> dict[str, Any]:
    """Each scheduler has fields of its own. A field that the job does not give is left out."""
    job, policy = arrangement.job, arrangement.job.run_policy.scheduling_policy
    fields: dict[str, Any] = {"minMember": gang.members, "minResources": as_texts(policy.min_resources)}
    if gang.scheduler.name == VOLCANO:
        fields["minResources"] = fields["minResources"] or least_resources(arrangement, gang)
        fields["queue"] = policy.queue or job.annotations.get(QUEUE, "")
        fields["priorityClassName"] = policy.priority_class or priority_class(arrangement)
    else:
        # Without resources: with them, the coscheduling plugin of v0.33 does not look again at a group that did not fit
        # when a pod ends and makes room (docs/decisions/0038-gangs.md). With 0 the scheduler takes its own limit.
        fields["scheduleTimeoutSeconds"] = policy.schedule_timeout_seconds or 0
    return {name: value for name, value in fields.items() if value not in ("", {})}


def joined(job: Job, gang: Gang, added: Additions) -> Additions:
    """The additions of a pod that is in the job's group. Only the group's scheduler can start it, so no other may."""
    group, scheduler = names.pod_group(job.name), gang.scheduler
    return replace(
        added,
        labels={**added.labels, **scheduler.labels(group)},
        annotations={**added.annotations, **scheduler.annotations(group)},
        spec={**added.spec, "schedulerName": scheduler.name},
    )


def priority_class(arrangement: Arrangement) -> str:
    """The launcher's, or the workers' if it has none."""
    for role in (arrangement.launcher, arrangement.worker):
        if role and (found := spec_of(role.template).get("priorityClassName")):
            return str(found)
    return ""


def least_resources(arrangement: Arrangement, gang: Gang) -> dict[str, str]:
    """What the members need together: the launcher, if it is one, and the rest as workers."""
    workers = gang.members - gang.with_launcher
    counts = ((arrangement.launcher, int(gang.with_launcher)), (arrangement.worker, workers))
    total = added(
        {name: value * count for name, value in of_pod(spec_of(role.template)).items()}
        for role, count in counts
        if role and count > 0
    )
    return {name: as_quantity(value) for name, value in sorted(total.items())}


def of_pod(pod: Mapping[str, Any]) -> Mapping[str, Decimal]:
    """What the scheduler reserves for a pod: its containers together, or its largest init container if that is more."""
    sidecars = [each for each in pod.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    running = added(requests(each) for each in (*(pod.get("containers") or ()), *sidecars))
    for each in pod.get("initContainers") or ():
        for name, value in requests(each).items():
            running[name] = max(running.get(name, Decimal(0)), value)
    return added([running, quantities(pod.get("overhead"))])


def requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """A container's requests; a limit counts as a request where no request is given."""
    resources = container.get("resources")
    given = resources if isinstance(resources, dict) else {}
    return {**quantities(given.get("limits")), **quantities(given.get("requests"))}


def added(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, Decimal(0)) + value
    return total


def quantities(given: object) -> dict[str, Decimal]:
    """Amounts by name. What is no quantity is left out: the API server refuses the pod, and says why."""
    found: dict[str, Decimal] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        try:
            found[name] = number(value, name)
        except UserError:
            continue
    return found


def as_texts(resources: Mapping[str, object]) -> dict[str, object]:
    return {name: as_text(value) for name, value in resources.items()}
