"""From what the user wants to the engine that runs it on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mpiboot.engines import stdin
from mpiboot.engines.kubernetes import directory, program_job
from mpiboot.engines.kubernetes.cluster import Cluster
from mpiboot.engines.kubernetes.engine import Caller, KubernetesEngine
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.engines.directories import Directories
    from mpiboot.engines.inbox import Event, Inbox
    from mpiboot.engines.output import Output
    from mpiboot.engines.request import Request


@dataclass(frozen=True)
class Wanted:
    """The job, where it runs, and how. `directories`: of a program's job; None for a manifest."""

    job: Request
    grace: float | None
    directories: Directories | None
    own_stdin: bool = True  # the manifest is not on it
    namespace: str | None = None
    context: str | None = None
    fetch: tuple[str, ...] = ()
    verbose: bool = False
    detach: bool = False


def engine(wanted: Wanted, inbox: Inbox[Event], output: Output) -> KubernetesEngine:
    """The engine for a job. This only looks at this machine: no object is made yet."""
    data = wanted.job.data
    listing = None
    if wanted.directories:
        here = wanted.directories.workdir
        listing = directory.listing(Path(here.source)) if here else None
        data = program_job.of_program(data, here.target if here else "", wanted.fetch)
        if wanted.fetch and not here:
            raise UserError("--fetch brings files of the current directory back, and the job does not have it")
        if wanted.directories.note:
            output.note(wanted.directories.note)
    given = stdin.of_this_process() if wanted.own_stdin and not wanted.detach else None
    has_input = given is not None and stdin.has_input()
    if given and program_job.has_launcher(data):
        data = program_job.with_stdin(data)
    elif given:
        given = None
        if has_input:
            output.note("warning: a job of v1alpha1 gets no input; convert it first: mpiboot convert")
    caller = Caller(
        listing, given, needs_stdin=has_input, fetch=wanted.fetch, verbose=wanted.verbose, detach=wanted.detach
    )
    cluster = Cluster(wanted.namespace, wanted.context)
    return KubernetesEngine(cluster, data, wanted.grace, inbox, output, caller)
