"""`mpiboot run`: from what is wanted to an exit code, with nothing left behind."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpiboot.engines import choose, planned, request
from mpiboot.engines.drawing import Drawing
from mpiboot.engines.follow import Follow, Rules
from mpiboot.engines.inbox import LAUNCHER, Inbox, Interrupted, signals_to
from mpiboot.engines.marks import Marks
from mpiboot.engines.output import Output
from mpiboot.job import elastic, names, pods
from mpiboot.job.elastic_faults import faults, too_few
from mpiboot.job.errors import UserError
from mpiboot.job.settings import Settings

if TYPE_CHECKING:
    from docker import APIClient

    from mpiboot.engines.inbox import Event
    from mpiboot.engines.place import Place
    from mpiboot.job.model import Job

BACKOFF_LIMIT = 6  # Kubernetes' default
GRACE = 10.0


@dataclass(frozen=True)
class Wanted:
    """The command line of `mpiboot run`."""

    manifest: str | None
    name: str | None
    program: request.Program | None
    engine: str | None = None
    timeline: str | None = None
    verbose: bool = False
    quiet: bool = False
    allow_host_path: bool = False


def run(wanted: Wanted) -> int:
    """Run the job to its end; its exit code."""
    drawing = Drawing(wanted.timeline, verbose=wanted.verbose)
    inbox: Inbox[Event] = Inbox()
    marks = Marks(wanted=drawing.wanted)
    gone = Interrupted(signal.SIGPIPE)
    output = Output(
        quiet=wanted.quiet, verbose=wanted.verbose, broken=lambda: inbox.put(gone), seen=marks.seen
    )
    with signals_to(inbox):
        place, job = _prepared(wanted, inbox, output, marks)
        output.width = max(len(LAUNCHER), len(names.worker("", job.workers - 1)) - 1)
        try:
            return Follow(place, inbox, rules(job), output).until_end()
        finally:
            _remove(place, output)
            marks.mark("done", "job")
            drawing.draw(marks, output)


def _remove(place: Place, output: Output) -> None:
    try:
        place.remove()
    except UserError as error:
        # What the job itself ended with is what counts, an error of its own above all.
        output.say(str(error))


def rules(job: Job) -> Rules:
    """What the manifest says about attempts and ends."""
    policy = job.run_policy
    backoff = BACKOFF_LIMIT if policy.backoff_limit is None else policy.backoff_limit
    grace = pods.spec_of(job.launcher.template).get("terminationGracePeriodSeconds")
    return Rules(
        attempts=backoff + 1,
        deadline=policy.active_deadline_seconds,
        grace=GRACE if grace is None else float(grace),
        elastic=elastic.of_job(job) is not None,
        workers=job.workers,
        restart_workers=bool(job.worker and job.worker.restart_policy != "Never"),
    )


def _prepared(wanted: Wanted, inbox: Inbox[Event], output: Output, marks: Marks) -> tuple[Place, Job]:
    # A faulty manifest is told before an engine is asked for.
    requested = request.from_file(wanted.manifest, wanted.name) if wanted.manifest else None
    api = choose.docker_or_local(wanted.engine, output.note)
    if requested is None:
        assert wanted.program
        requested = request.from_program(_with_image(wanted.program, api), _settings(wanted.program, api))
    _demand_possible(requested.job.job)
    for warning in requested.job.warnings:
        output.note(f"warning: {warning.text(requested.source)}")
    job = requested.job.job
    if api is None:
        from mpiboot.engines.local.place import LocalPlace

        return LocalPlace(job, inbox, output, marks, requested.digest), job
    from mpiboot.engines.docker.place import DockerPlace

    return DockerPlace(api, job, inbox, output, marks, requested.digest, wanted.allow_host_path), job


def _demand_possible(job: Job) -> None:
    size = elastic.of_job(job)
    if size is None:
        return
    slots = job.slots_per_worker
    problems = [*faults(size, slots), *filter(None, [too_few(size, job.workers, slots)])]
    if problems:
        raise UserError("; ".join(problems))


def _with_image(program: request.Program, api: APIClient | None) -> request.Program:
    if program.image:
        return program
    if api is not None:
        raise UserError("containers need an image: mpiboot run [OPTIONS] IMAGE -- PROGRAM; or use --engine local")
    return replace(program, image=planned.THIS_MACHINE)


def _settings(program: request.Program, api: APIClient | None) -> Settings | None:
    """Whether the image carries mpiboot, looked up if it is here; else its name decides where keys are mounted."""
    if api is None or not program.image:
        return None
    from mpiboot.engines.docker import pull

    image = pull.look(api, program.image)
    if image is None:
        return None
    return Settings(own_image_pattern=planned.NO_IMAGE, own_images=frozenset({image.name} if image.own else ()))
