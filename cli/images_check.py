"""`mpiboot images check`: tests whether an image fulfils the contract of MPI jobs."""

from __future__ import annotations

import sys

import click

from mpiboot.containers.client import connect
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
    help="The strictest way to run IMAGE that decides the exit code: as its own user, as any uid, or as any uid "
    "without capabilities on a read-only root. The check tries and reports all three.",
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
    """Check whether MPI jobs can run on IMAGE, and print what to change if not.

    IMAGE is any image in this engine, also of other makers. For each way to run it, the check starts two containers
    with a job's keys, ssh between them, 4 ranks and an allreduce. It leaves nothing behind. docs/image-contract.md
    explains the contract.

    Exit codes: 0 the image fulfils the contract, 1 it does not, 2 mpiboot cannot check the image (no such image, other
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
