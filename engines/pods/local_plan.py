"""The plan of a job that runs on this machine, and the parts of it that both engines use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpiboot.job import names
from mpiboot.job.check.advice import advice
from mpiboot.job.plan.plan import plan
from mpiboot.job.settings import Settings
from mpiboot.ssh import keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mpiboot.engines.output import Output
    from mpiboot.job.model import Job, Role
    from mpiboot.job.plan.plan import Plan
    from mpiboot.job.plan.ssh_material import SshMaterial

INIT_TIMEOUT = 300.0
INIT_TIMEOUT_ENV = "MPIBOOT_INIT_TIMEOUT"
THIS_MACHINE = "this-machine"  # in the place of an image, where a manifest needs one and none is used
ANY_IMAGE, NO_IMAGE = "", "(?!)"  # patterns that fit every name, and none


def plan_for_images(job: Job, own_images: frozenset[str], material: SshMaterial | None = None) -> Plan:
    """The plan with new keys, or with those that the job has. `own_images` are those that carry mpiboot."""
    return plan(job, material or keys.generate(), Settings(own_image_pattern=NO_IMAGE, own_images=own_images))


def plan_without_images(job: Job) -> Plan:
    """The plan with new keys, for launcher and workers that are this mpiboot itself."""
    return plan(job, keys.generate(), Settings(own_image_pattern=ANY_IMAGE))


def pods(plan: Plan) -> Iterator[tuple[Role, int, Mapping[str, Any]]]:
    """The pods of a plan, workers first, each with a name."""
    for index, worker in enumerate(plan.workers):
        yield "worker", index, worker
    template = plan.launcher["spec"]["template"]
    metadata = {**template.get("metadata", {}), "name": names.launcher(plan.job.name), "namespace": plan.job.namespace}
    yield "launcher", 0, {**template, "metadata": metadata}


def init_timeout(env: Mapping[str, str]) -> float:
    """How long workers may take until their SSH answers, in seconds, as `mpiboot launch` reads it."""
    try:
        return float(env.get(INIT_TIMEOUT_ENV) or INIT_TIMEOUT)
    except ValueError:
        return INIT_TIMEOUT


def addresses(job: Job, known: Mapping[int, str]) -> str:
    """The addresses file: where each worker is, by index (`ADDRESS [PORT [USER]]`)."""
    hosts = names.worker_hosts(job)
    return "".join(f"{hosts[index]} {known[index]}\n" for index in sorted(known) if index < len(hosts))


def warn(output: Output, plan: Plan, ignored: Mapping[str, set[str]], engine: str) -> None:
    """Print the plan's warnings, and in one line the fields of the pods that have no effect on this engine."""
    for warning in advice(plan.arrangement):
        output.note(f"warning: {warning.text()}")
    if ignored:
        parts = (f"{what} ({' and '.join(sorted(roles))})" for what, roles in ignored.items())
        output.note(f"warning: {engine} ignores: {'; '.join(parts)}")


