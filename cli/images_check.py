"""`mpiboot images check`: does an image fulfil the contract of MPI jobs?"""

from __future__ import annotations

import sys

import click

from mpiboot.containers import connect
from mpiboot.images.check import LIMIT_SECONDS, report
from mpiboot.images.check import check as check_image
from mpiboot.images.check.progress import Progress
from mpiboot.images.check.stop import stopping_by_signal
from mpiboot.images.contract import Profile


@click.command()
@click.argument("image")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.  [default: text]")
@click.option(
    "--require",
    type=click.Choice([profile.word for profile in Profile]),
    default=Profile.OWN.word,
    show_default=True,
    help="The strictest way to run it that decides the exit code: as its own user, as any uid, or as any uid without "
    "capabilities on a read-only root. All three are tried and reported.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=LIMIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="End what still runs after this many seconds and report it as a fault.",
)
def check(image: str, *, as_json: bool, require: str, limit: float) -> int:
    """Check whether MPI jobs can run on IMAGE, and say what to change if not.

    IMAGE is any image in this engine, also of other makers. Two of its containers are started for each way to run it,
    with a job's keys, ssh between them, 4 ranks and an allreduce. Nothing is left behind. The contract, with reasons:
    docs/image-contract.md.

    Exit codes: 0 the contract is fulfilled, 1 it is not, 2 the image cannot be checked (no such image, other
    architecture, no shell in it, no engine), 130 and 143 ended by Ctrl-C or SIGTERM.
    """
    required = Profile.of(require)
    progress = Progress(sys.stderr)
    try:
        with stopping_by_signal():
            found = check_image(connect(), image, progress, limit)
    finally:
        progress.clear()
    print(report.as_json(found, required) if as_json else report.text(found, required))
    return 0 if found.fulfils(required) else 1
