"""The launcher of a job: a batch/v1 Job of one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import delivery, environment, keys, labels, names, objects, pods, trust, wishes
from mpiboot.job.workers import host_network

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.model import Job
    from mpiboot.job.settings import Settings
    from mpiboot.job.wishes import Waits


def manifest(job: Job, settings: Settings) -> dict[str, Any]:
    """The Job. It carries no ttlSecondsAfterFinished: an operator that was away would find it gone and run it again."""
    policy = job.run_policy
    template = job.launcher.template
    given = {"activeDeadlineSeconds": policy.active_deadline_seconds, "backoffLimit": policy.backoff_limit}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": objects.metadata(job, names.launcher(job.name), labels.of_object(job)),
        "spec": {
            **{name: value for name, value in given.items() if value is not None},
            **({"suspend": True} if policy.suspend else {}),
            # A launcher that is still ending may hold the job's ports and files: the next one comes after it.
            "podReplacementPolicy": "Failed",
            "template": pods.dressed(template, additions(job, settings), job.main_container),
        },
    }


def additions(job: Job, settings: Settings) -> pods.Additions:
    """What the launcher's pod needs beyond its template."""
    template = job.launcher.template
    container = pods.main_container(template, job.main_container)
    waits = trust.launcher_waits(job, settings)
    host_keys = trust.host_keys(job, settings)
    delivered = trust.ssh_is_delivered(job, settings, "launcher")
    private = keys.private_files(job, template, container, copied=waits == "in-place" or delivered)
    return pods.Additions(
        labels=labels.of_pod(job, "launcher"),
        environment=environment.of_launcher(
            job,
            settings,
            host_keys=host_keys,
            checks_in=waits == "in-place",
            agents=delivery.agents(job) if delivered else {},
        ),
        volumes=[
            keys.volume(job, "launcher", private=private, verify=host_keys == "verify"),
            objects.config_volume(job),
            addresses_volume(),
            *([delivery.volume(settings)] if delivered else ()),
        ],
        spec={
            "hostname": names.launcher(job.name),
            "subdomain": names.service(job.name),
            "restartPolicy": job.launcher.restart_policy,
            **host_network(template),
            **gates(template, waits),
        },
        container=command(container, waits),
    )


def command(container: Mapping[str, Any], waits: Waits) -> dict[str, Any]:
    """`mpiboot launch` before the user's command. Without a command the entrypoint of our images does the same."""
    words = pods.with_text(container).get("command")
    if waits != "in-place" or not words or trust.starts_mpiboot(container):
        return {}
    return {"command": ["mpiboot", "launch", "--", *words]}


def gates(template: Mapping[str, Any], waits: Waits) -> dict[str, Any]:
    """Our scheduling gate before the user's own: queueing systems look for theirs at the end."""
    if waits != "gate":
        return {}
    given = pods.spec_of(template).get("schedulingGates") or ()
    return {"schedulingGates": [{"name": wishes.GATE}, *given]}


def addresses_volume() -> pods.Volume:
    """The workers' addresses as a file, from an annotation that may come and change while the launcher runs."""
    item = {"path": "addresses", **environment.field_ref(f"metadata.annotations['{wishes.ADDRESSES}']")}
    return pods.Volume("mpiboot-addresses", {"downwardAPI": {"items": [item]}}, environment.ADDRESSES_DIR)
