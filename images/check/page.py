"""The contract as a page. Write it by: python -m mpiboot.images.check.page > docs/image-contract.md"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mpiboot.images.contract import LIVE, MEANING, STATIC, Point, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

OPENING = """\
# What an image must offer to run in an MPI job

`mpiboot images check IMAGE` tries all of this on real containers, on any image, in seconds. This page is made from the
table that it uses, `images/contract.py`; a test compares the two.

## Three ways to run an image

A job can run as each profile for which the image has all points up to that profile, and which then works when tried.
`--require` says which one decides the exit code: 0 if the image fulfils it, 1 if not. An image that cannot be checked,
as it is not there, is made for other machines or has no shell, gets one line and exit code 2 instead of a report.
"""

LIVE_OPENING = """\
## What is tried

For each profile two containers run on a network of their own, with a client key and a host key that were made a moment
before, mounted as a job mounts them. The worker is started as a job would start it: by the image's own entrypoint if
that is mpiboot's, else by an sshd command that puts the job's host key first. The launcher believes only that key.
A step that needs what the image lacks, such as an allreduce without Python, is reported as not checked: no fault.
What still runs after `--limit` seconds is ended and reported as a fault, and the points behind it as not checked.
"""

CLOSING = """\
## What the checker leaves behind

Nothing: containers, networks and volumes carry the label `mpiboot.dev/check` and are removed when it ends, also by
Ctrl-C or SIGTERM. Only a SIGKILL leaves them; `docker ps -a --filter label=mpiboot.dev/check` lists such leftovers, and
the launchers among them end by themselves after an hour.
"""


def page() -> str:
    """The whole page, as Markdown."""
    profiles = "".join(f"- **{profile.word}**: {MEANING[profile]}\n" for profile in Profile)
    static = "".join(_section(title, needed) for title, needed in _groups())
    return f"{OPENING}\n{profiles}\n{static}{LIVE_OPENING}\n{_table(LIVE)}\n{CLOSING}"


def _groups() -> Iterable[tuple[str, Profile | None]]:
    yield from ((f"Needed by `{profile.word}`", profile) for profile in Profile)
    yield "Advice: good to have, no job fails without it", None


def _section(title: str, needed: Profile | None) -> str:
    return f"## {title}\n\n{_table([point for point in STATIC if point.needed_by is needed])}\n"


def _table(points: Iterable[Point]) -> str:
    lines = ["| point | must | why | fix |", "|---|---|---|---|"]
    lines += [f"| `{p.id}` | {_cell(p.must)} | {_cell(p.reason)} | {_cell(p.fix)} |" for p in points]
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
