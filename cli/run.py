"""`mpiboot run`."""

from __future__ import annotations

import os
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from mpiboot.job import mpi as runtimes

if TYPE_CHECKING:
    from mpiboot.engines.request import Program

COMMAND = "mpiboot.command"
# mpirun's spellings of -n.
RANKS = {"-np", "--np"}
# A manifest says these itself.
OF_A_PROGRAM: tuple[str, ...] = (
    "image", "processes", "workers", "slots", "env", "mpi", "tag_output", "ssh_dir", "no_workdir", "fetch",
)  # fmt: skip
# Only an engine of this machine has these.
OF_THIS_MACHINE = ("retries", "keep", "timeline", "mounts", "allow_host_path", "allow_privileges")
# Only a cluster has these.
OF_A_CLUSTER = ("namespace", "context", "fetch")
MANIFESTS = (".yaml", ".yml", ".json")


class WithCommand(click.Command):
    """A command whose words after `--` are the program, unchanged."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            position = args.index("--")
            args, ctx.meta[COMMAND] = args[:position], args[position + 1 :]
        args = [_mpirun_s(word) for word in args]
        try:
            return super().parse_args(ctx, list(args))
        except click.UsageError:
            if COMMAND not in ctx.meta and (line := self._with_dashes(args)):
                raise click.UsageError(f"put -- before the program: {line}", ctx) from None
            raise

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PROGRAM [ARGS]...]"]

    def _with_dashes(self, args: list[str]) -> str:
        """The command line with the `--` that it lacks; empty if no program stands in it."""
        words = [at for at in self._words(args) if not args[at].endswith(MANIFESTS)]
        if not words or any(word.startswith(("-f", "--file")) for word in args[: words[0]]):
            return ""
        image: list[str] = []
        if ("--engine", "local") not in pairwise(args):
            image, words = (["IMAGE"], words) if is_program(args[words[0]]) else ([], words[1:])
        return shlex.join(["mpiboot", "run", *args[: words[0]], *image, "--", *args[words[0] :]]) if words else ""

    def _words(self, args: list[str]) -> list[int]:
        """The positions of words that are no option and no option's value."""
        options = (option for option in self.params if isinstance(option, click.Option) and not option.is_flag)
        takes_value = {flag for option in options for flag in option.opts}
        found, at = [], 0
        while at < len(args):
            if not args[at].startswith("-"):
                found.append(at)
            at += 2 if args[at] in takes_value else 1
        return found


def is_program(word: str) -> bool:
    """Whether it is the path of a program, and not an image."""
    return word.startswith(("./", "../", "/", "~"))


def _mpirun_s(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"--processes{equals}{value}" if name in RANKS else word


@click.command(cls=WithCommand)
@click.option("-f", "--file", "manifest", metavar="FILE",
              help="Manifest of an MPIJob; - reads stdin. A name like job.yaml needs no -f.")  # fmt: skip
@click.option("-n", "--processes", type=int, metavar="N",
              help="Number of ranks; also -np.  [default: one for each slot]")  # fmt: skip
@click.option("--workers", type=int, default=1, show_default=True, metavar="N", help="Number of workers.")
@click.option("--slots", type=int, metavar="N", help="Ranks that a worker runs.  [default: so that all ranks fit]")
@click.option("-e", "--env", multiple=True, metavar="NAME=VALUE", help="Set a variable for all ranks; may be repeated.")
@click.option("--mpi", type=click.Choice(runtimes.names(), case_sensitive=False),
              help=f"MPI runtime of the image.  [default: by its name, else {runtimes.DEFAULT.name}]")  # fmt: skip
@click.option("--tag-output", is_flag=True, help="Let mpirun begin each line of a rank with the rank's number.")
@click.option("--ssh-dir", metavar="PATH", help="Where an image without mpiboot expects the SSH keys of its user.  "
              "[default: .ssh in the home of the image's user]")  # fmt: skip
@click.option("--name", metavar="NAME", help="Name of the job.  [default: the manifest's, or one after the program]")
@click.option("--engine", type=click.Choice(["docker", "local", "kubernetes"]),
              help="Where to run.  [default: docker if an engine answers, else local]")  # fmt: skip
@click.option("--namespace", metavar="NAME", help="Namespace of the job; implies --engine kubernetes.  "
              "[default: the manifest's, else the kubeconfig's]")  # fmt: skip
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; implies --engine kubernetes.  "
              "[default: its current one]")  # fmt: skip
@click.option("--fetch", multiple=True, metavar="PATTERN",
              help="With --engine kubernetes: bring files back that the program wrote into the current directory, like "
              "'out/**' or '*.dat'; may be repeated.")  # fmt: skip
@click.option("-d", "--detach", is_flag=True, help="Return when the job has started, and on a cluster has the current "
              "directory; print its name. `mpiboot logs -f` prints its output.")  # fmt: skip
@click.option("--retries", type=click.IntRange(min=0), metavar="N",
              help="How often a launcher that failed is started again.  [default: the manifest's backoffLimit, else 0; "
              "a cluster's default is 6]")  # fmt: skip
@click.option("--restarts", type=click.IntRange(min=0), metavar="N",
              help="How often the launcher runs a failed command again on the same workers.  [default: 0]")  # fmt: skip
@click.option("--final-codes", metavar="CODES",
              help="Exit codes after which a command does not run again, like 2,64-78.")  # fmt: skip
@click.option("--lost-worker-timeout", type=click.IntRange(min=0), metavar="SECONDS",
              help="After how long without a packet a worker is lost; 0: never.  [default: 40]")  # fmt: skip
@click.option("--mount", "mounts", multiple=True, metavar="SRC:DST[:ro]",
              help="Show a file or directory of this machine to the job at the path DST; may be repeated.")
@click.option("--no-workdir", is_flag=True,
              help="Do not show the current directory to the program, and start it where its image says.")  # fmt: skip
@click.option("--allow-host-path", is_flag=True, help="Let a manifest's hostPath volumes see this machine's files.")
@click.option("--allow-privileges", is_flag=True,
              help="Let a manifest add capabilities or switch seccomp off.")  # fmt: skip
@click.option("--keep/--no-keep", default=True, show_default=True,
              help="Whether `mpiboot logs` can print the output after the end.")  # fmt: skip
@click.option("--timeline", metavar="FILE.svg", help="Draw the events of the job with their times.")
@click.option("-v", "--verbose", is_flag=True,
              help="Print the events of the job with their times, and all messages of sshd.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Print only what the launcher prints.")
@click.argument("image", required=False)
@click.pass_context
def run(
    ctx: click.Context, manifest: str | None, processes: int | None, workers: int, slots: int | None,
    env: tuple[str, ...], mpi: str | None, ssh_dir: str | None, tag_output: bool, name: str | None, engine: str | None,
    namespace: str | None, context: str | None, fetch: tuple[str, ...], detach: bool, retries: int | None,
    restarts: int | None, final_codes: str | None, lost_worker_timeout: int | None, mounts: tuple[str, ...],
    no_workdir: bool, allow_host_path: bool, allow_privileges: bool, timeline: str | None, verbose: bool, quiet: bool,
    keep: bool, image: str | None,
) -> int:  # fmt: skip
    """Run an MPI job on this machine or on a cluster, and end as its launcher ends.

    Either a program in an image: mpiboot run -n 4 --workers 2 IMAGE -- ./program args < input; rank 0 gets this
    command's stdin. Or a manifest: mpiboot run job.yaml. With --engine local the program is this machine's, and
    IMAGE may be left out.

    Exit codes: the launcher's own (128+N if signal N ended it); 2 the input is wrong; 124 the job or its workers took
    too long; 126 and 127 the program cannot be run; 130 ended by Ctrl-C.
    """
    from mpiboot.engines import directories, stdin
    from mpiboot.engines.background import detached
    from mpiboot.engines.run import RunOptions
    from mpiboot.engines.run import run as start

    words = ctx.meta.get(COMMAND)
    program = None
    of_a_program = OF_A_PROGRAM
    if manifest is None and image and image.endswith(MANIFESTS):
        manifest, of_a_program = image, tuple(name for name in OF_A_PROGRAM if name != "image")
    if manifest is None:
        program = _program(image, words, processes, workers, slots, env, mpi, ssh_dir, name, tag_output)
    elif given := [*_given(ctx, of_a_program), *(["the program"] if words is not None else [])]:
        raise click.UsageError(f"a manifest brings the whole job: leave out {' and '.join(given)}")
    engine = engine or ("kubernetes" if namespace or context else None)
    if engine == "kubernetes":
        if given := _given(ctx, OF_THIS_MACHINE):
            raise click.UsageError(f"{' and '.join(given)}: not with --engine kubernetes; leave it out")
        if fetch and detach:
            raise click.UsageError("--fetch waits for the end of the job, and --detach does not: leave one out")
    elif given := _given(ctx, OF_A_CLUSTER):
        raise click.UsageError(f"{given[0]} goes with --engine kubernetes; leave it out")
    annotations = _annotations(restarts, final_codes, lost_worker_timeout)
    options = RunOptions(
        manifest, name, program, engine, timeline, verbose, quiet, allow_host_path, allow_privileges, retries,
        namespace, directories.of_caller(mounts, workdir=manifest is None and not no_workdir), context, fetch, detach,
        keep=keep, annotations=annotations,
    )  # fmt: skip
    if not detach or engine == "kubernetes":
        return start(options)
    if manifest != "-" and stdin.has_input():
        click.echo("mpiboot: warning: a detached job gets no input; put it into a file", err=True)
    return detached(lambda started: start(options, started), reads_stdin=manifest == "-")


def _annotations(restarts: int | None, final_codes: str | None, lost_worker_timeout: int | None) -> dict[str, str]:
    """The annotations that say the same in a manifest."""
    from mpiboot.job import job_annotations

    names = (job_annotations.RESTARTS, job_annotations.FINAL_CODES, job_annotations.LOST_WORKER_TIMEOUT)
    values = (restarts, final_codes, lost_worker_timeout)
    given = {name: str(value) for name, value in zip(names, values, strict=True) if value is not None}
    for name, value in given.items():
        if wrong := job_annotations.fault(name, value):
            raise click.UsageError(f"--{name.removeprefix(job_annotations.PREFIX)} {wrong}")
    return given


def _given(ctx: click.Context, names: tuple[str, ...]) -> list[str]:
    """Those of these parameters that the command line has, by the names that users know."""
    parameters = {parameter.name: parameter for parameter in ctx.command.params}
    on_line = (name for name in names if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE)
    return [
        parameters[name].opts[0] if isinstance(parameters[name], click.Option) else name.upper() for name in on_line
    ]


def _program(
    image: str | None, words: list[str] | None, processes: int | None, workers: int, slots: int | None,
    env: tuple[str, ...], mpi: str | None, ssh_dir: str | None, name: str | None, tag_output: bool,
) -> Program:  # fmt: skip
    from mpiboot.engines.request import Program

    if not words:
        raise click.UsageError(_what_to_run(image))
    if not words[0]:
        raise click.UsageError("the program is an empty word: write its name after `--`")
    if image == "":
        raise click.UsageError("IMAGE is an empty word: write the name of an image, like mpiboot/openmpi")
    wrong = [word for word in env if "=" not in word or word.startswith("=")]
    if wrong:
        raise click.UsageError(f"-e takes NAME=VALUE, not {wrong[0]!r}")
    pairs = dict(word.split("=", 1) for word in env)
    return Program(
        image or "", words, processes, workers, name, slots, mpi, pairs, ssh_dir, tag_output,
        output_at_once=os.isatty(1),
    )  # fmt: skip


def _what_to_run(image: str | None) -> str:
    if image and is_program(image):
        return f"put -- before the program, and an image before that: mpiboot run IMAGE -- {shlex.quote(image)}"
    if image:
        return f"say what to run in {image}: mpiboot run {shlex.quote(image)} -- PROGRAM [ARGS]"
    return "say what to run: -f FILE, or IMAGE -- PROGRAM [ARGS]"
