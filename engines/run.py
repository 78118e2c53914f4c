"""`mpiboot run`: from a command line to an exit code, with nothing left behind."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mpiboot.engines import choose, request, stdin
from mpiboot.engines.directories import Directories
from mpiboot.engines.follow import JobFollower, Rules
from mpiboot.engines.inbox import LAUNCHER, Inbox, Interrupted, signals_to
from mpiboot.engines.output import Output
from mpiboot.engines.pods import local_plan
from mpiboot.engines.records.process_start import start_of
from mpiboot.engines.records.record import Record
from mpiboot.engines.records.writer import RecordWriter
from mpiboot.engines.timeline.recorder import EventRecorder
from mpiboot.engines.timeline.report import TimelineReport
from mpiboot.job import elastic, names, restarts
from mpiboot.job.elastic_faults import faults, too_few
from mpiboot.job.errors import UserError
from mpiboot.job.model import OUR_USERS_SSH
from mpiboot.job.settings import Settings
from mpiboot.job.template import main_container, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from docker import APIClient

    from mpiboot.engines.engine import Engine
    from mpiboot.engines.inbox import Event
    from mpiboot.job.model import Job

BACKOFF_LIMIT = 6  # Kubernetes' default, where the manifest has none
GRACE = 10.0


@dataclass(frozen=True)
class RunOptions:
    """The command line of `mpiboot run`."""

    manifest: str | None
    name: str | None
    program: request.Program | None
    engine: str | None = None
    timeline: str | None = None
    verbose: bool = False
    quiet: bool = False
    allow_host_path: bool = False
    allow_privileges: bool = False
    retries: int | None = None  # None: as the manifest has it, else 0
    namespace: str | None = None  # of a cluster; None: the manifest's, else the kubeconfig's
    directories: Directories = Directories()  # noqa: RUF009 (it is frozen)
    context: str | None = None  # of the kubeconfig; None: its current one
    fetch: tuple[str, ...] = ()  # from a cluster: patterns of files to bring back
    detach: bool = False  # on a cluster: leave the job there when it has what it needs of this machine
    keep: bool = True  # its output after its end, on this machine
    annotations: Mapping[str, str] = field(default_factory=dict)  # these replace the manifest's


def run(options: RunOptions, on_started: Callable[[str], None] = lambda _: None) -> int:
    """Run the job to its end; its exit code. `on_started` gets its name when its processes have been started."""
    timeline = TimelineReport(options.timeline, verbose=options.verbose)
    inbox: Inbox[Event] = Inbox()
    recorder = EventRecorder(wanted=timeline.wanted)
    broken_pipe = Interrupted(signal.SIGPIPE)
    output = Output(
        quiet=options.quiet, verbose=options.verbose, on_broken_pipe=lambda: inbox.put(broken_pipe), recorder=recorder
    )
    record = output.record = RecordWriter(keep=options.keep, note=output.note)
    recorder.on_event = record.event_of_engine

    def begin() -> None:
        if name := record.begin():
            on_started(name)

    with signals_to(inbox):
        engine, rules = _prepare(options, inbox, output, recorder)
        output.width = max(len(LAUNCHER), len(names.worker("", rules.workers - 1)) - 1)
        code, reason = 1, ""
        try:
            code = JobFollower(engine, inbox, rules, output, begin).until_end()
        except UserError as error:
            code, reason = error.exit_code, str(error)
            raise
        finally:
            _remove(engine, output)
            recorder.record("done", "job")
            record.end(code, reason)
            timeline.write(recorder, output)
    return code


def _remove(engine: Engine, output: Output) -> None:
    try:
        engine.remove()
    except UserError as error:
        # The exit code and an error of the job itself count for more.
        output.say(str(error))


def _rules(job: Job, retries: int | None) -> Rules:
    """The manifest's limits. `retries` replaces its number of attempts.

    Without either there is one attempt: on a cluster the next one may run on another node, here nothing has changed.
    """
    policy = job.run_policy
    wanted = policy.backoff_limit if retries is None else retries
    grace = _grace(job)
    return Rules(
        attempts=(wanted or 0) + 1,
        cluster_retries=BACKOFF_LIMIT if wanted is None else 0,
        deadline=policy.active_deadline_seconds,
        grace=GRACE if grace is None else grace,
        elastic=elastic.of_job(job) is not None,
        restarts=restarts.of_job(job) > 0,
        workers=job.workers,
        restart_workers=bool(job.worker and job.worker.restart_policy != "Never"),
    )


def _grace(job: Job) -> float | None:
    """The launcher's grace period in seconds, if the manifest has one."""
    grace = spec_of(job.launcher.template).get("terminationGracePeriodSeconds")
    return None if grace is None else float(grace)


def _prepare(
    options: RunOptions, inbox: Inbox[Event], output: Output, recorder: EventRecorder
) -> tuple[Engine, Rules]:
    # The manifest comes first: its mistakes are reported even where no engine answers.
    wanted = request.from_file(options.manifest, options.name) if options.manifest else None
    if options.engine == "kubernetes":
        return _on_cluster(options, wanted, inbox, output)
    api = choose.docker_or_local(options.engine, output.note)
    if wanted is None:
        assert options.program
        wanted = _from_program(options.program, api)
    wanted = request.annotated(wanted, options.annotations)
    job = wanted.job.job
    _check(wanted, output)
    own_stdin = None if options.manifest == "-" else stdin.of_this_process()
    if api is None:
        from mpiboot.engines.local.engine import LocalEngine

        if elsewhere := [mount for mount in options.directories.mounts if mount.source != mount.target]:
            text = "processes of this machine see its files where they are"
            raise UserError(f"--mount {elsewhere[0].source}:{elsewhere[0].target} needs containers; {text}")
        local = LocalEngine(job, inbox, output, recorder, own_stdin)
        _set_job(output, "local", local.run_id, job)
        return local, _rules(job, options.retries)
    from mpiboot.engines.docker.engine import DockerEngine
    from mpiboot.engines.docker.security import Allowed

    allowed = Allowed(options.allow_host_path, options.allow_privileges)
    directories = _seen_by(api, options.directories, output)
    docker = DockerEngine(api, job, inbox, output, recorder, own_stdin, allowed, directories)
    _set_job(output, "docker", docker.run_id, job)
    return docker, _rules(job, options.retries)


def _set_job(output: Output, engine: str, run: str, job: Job) -> None:
    """From now on the output is kept as that of this job."""
    me = os.getpid()
    image = "" if engine == "local" else str(main_container(job.launcher.template, job.main_container).get("image"))
    assert output.record
    output.record.set_job(Record(job.name, engine, run, image, job.workers, time.time(), me, start_of(me)))


def _seen_by(api: APIClient, directories: Directories, output: Output) -> Directories:
    """Those that the engine's containers can have; a note on the working directory if it is not at its own path."""
    from mpiboot.engines.docker import bind_mounts

    if directories.workdir and not bind_mounts.is_here(api):
        where = f"the engine at {api.base_url} may run on another machine"
        directories = replace(directories, workdir=None, note=f"the job does not see the current directory: {where}")
    if directories.note:
        output.note(directories.note)
    return directories


def _on_cluster(
    options: RunOptions, wanted: request.Request | None, inbox: Inbox[Event], output: Output
) -> tuple[Engine, Rules]:
    if wanted is None:
        assert options.program
        if not options.program.image:
            raise UserError("a cluster needs an image: mpiboot run --engine kubernetes [OPTIONS] IMAGE -- PROGRAM")
        program = options.program
        if options.directories.workdir and not program.ssh_dir:  # an image that takes the directory holds mpiboot
            program = replace(program, ssh_dir=OUR_USERS_SSH)
        wanted = request.from_program(program)
    wanted = request.annotated(wanted, options.annotations)
    job = wanted.job.job
    _check(wanted, output)
    from mpiboot.engines.kubernetes import begin

    # A program's job goes to the namespace of the kubeconfig, and so does that of a manifest without one.
    namespace = options.namespace or (options.manifest and wanted.data["metadata"].get("namespace")) or None
    on_cluster = begin.Wanted(
        wanted,
        _grace(job),
        options.directories if options.program else None,
        own_stdin=options.manifest != "-",
        namespace=namespace,
        context=options.context,
        fetch=options.fetch,
        verbose=options.verbose,
        detach=options.detach,
    )
    engine = begin.engine(on_cluster, inbox, output)
    # The cluster counts attempts and seconds, replaces workers and sees to grace periods.
    return engine, Rules(grace=None, workers=job.workers)


def _check(wanted: request.Request, output: Output) -> None:
    """Print the warnings about a manifest; an error if the number of workers does not suit an elastic command."""
    job = wanted.job.job
    for warning in wanted.job.warnings:
        output.note(f"warning: {warning.text(wanted.source)}")
    size = elastic.of_job(job)
    if size is None:
        return
    slots = job.slots_per_worker
    problems = [*faults(size, slots), *filter(None, [too_few(size, job.workers, slots)])]
    if problems:
        raise UserError("; ".join(problems))


def _from_program(program: request.Program, api: APIClient | None) -> request.Request:
    if api is None:
        return request.from_program(program if program.image else replace(program, image=local_plan.THIS_MACHINE))
    if not program.image:
        raise UserError("containers need an image: mpiboot run [OPTIONS] IMAGE -- PROGRAM; or use --engine local")
    from mpiboot.engines.docker import pull, ssh_home

    image = pull.find(api, program.image)
    if image is None:  # it is pulled later; until then its name decides where the keys are mounted
        return request.from_program(program)
    if not image.own and not program.ssh_dir:
        program = replace(program, ssh_dir=ssh_home.of_user(api, image))
    own_images = frozenset({image.name} if image.own else ())
    return request.from_program(program, Settings(own_image_pattern=local_plan.NO_IMAGE, own_images=own_images))
