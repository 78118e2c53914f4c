"""The launcher of a job: a batch/v1 Job of one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import job_annotations, names
from mpiboot.job.plan import delivery, environment, keys, objects, pod_group, pods
from mpiboot.job.plan.workers import host_network
from mpiboot.job.template import spec_of, starts_mpiboot

if TYPE_CHECKING:
    from mpiboot.job.arrangement import Arrangement


def manifest(arrangement: Arrangement) -> dict[str, Any]:
    """The Job, without ttlSecondsAfterFinished: an operator that was down would find the Job gone and run it again."""
    job, policy = arrangement.job, arrangement.job.run_policy
    added = additions(arrangement)
    if arrangement.gang:
        added = pod_group.joined(job, arrangement.gang, added)
    given = {"activeDeadlineSeconds": policy.active_deadline_seconds, "backoffLimit": policy.backoff_limit}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": objects.metadata(job, names.launcher(job.name), names.object_labels(job)),
        "spec": {
            **{name: value for name, value in given.items() if value is not None},
            **({"suspend": True} if policy.suspend else {}),
            # A launcher that is still ending may hold the job's ports and files: the next one comes after it.
            "podReplacementPolicy": "Failed",
            "template": pods.with_additions(job.launcher.template, added, job.main_container),
        },
    }


def additions(arrangement: Arrangement) -> pods.Additions:
    """What the launcher's pod needs beyond its template."""
    job, role = arrangement.job, arrangement.launcher
    return pods.Additions(
        labels=names.pod_labels(job, "launcher"),
        environment=environment.of_launcher(arrangement, ssh=delivery.SSH if role.delivered else ""),
        volumes=[
            keys.volume(arrangement, role),
            objects.config_volume(arrangement),
            addresses_volume(),
            *([delivery.volume(arrangement.settings)] if role.delivered else ()),
        ],
        spec={
            "hostname": names.launcher(job.name),
            "subdomain": names.service(job.name),
            "restartPolicy": job.launcher.restart_policy,
            **host_network(role.template),
            **gates(arrangement),
        },
        container=command_fields(arrangement),
    )


def command_fields(arrangement: Arrangement) -> dict[str, Any]:
    """What waits before the user's command. Without a command the entrypoint of our images does that, and the guard
    stands before the arguments: the image's entrypoint runs them.
    """
    container = pods.with_text(arrangement.launcher.container)
    words = container.get("command")
    if arrangement.launch_mode == "guard":
        shell = [delivery.SHELL, "sh"] if arrangement.launcher.delivered else ["/bin/sh"]
        guard = [*shell, f"{names.CONFIG_DIR}/{objects.GUARD}"]
        return {"command": [*guard, *words]} if words else {"args": [*guard, *container["args"]]}
    if arrangement.launch_mode != "in-place" or not words or starts_mpiboot(container):
        return {}
    return {"command": ["mpiboot", "launch", "--", *words]}


def gates(arrangement: Arrangement) -> dict[str, Any]:
    """Our scheduling gate before the user's own: queueing systems look for theirs at the end."""
    if arrangement.launch_mode != "gate":
        return {}
    given = spec_of(arrangement.launcher.template).get("schedulingGates") or ()
    return {"schedulingGates": [{"name": job_annotations.GATE}, *given]}


def addresses_volume() -> pods.Volume:
    """The workers' addresses as a file, from an annotation that the operator may set and change at any time."""
    item = {"path": "addresses", **environment.field_ref(f"metadata.annotations['{job_annotations.ADDRESSES}']")}
    return pods.Volume("mpiboot-addresses", {"downwardAPI": {"items": [item]}}, environment.ADDRESSES_DIR)
