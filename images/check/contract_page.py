"""The contract as a page. To write it: python -m mpiboot.images.check.contract_page > docs/image-contract.md"""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

from mpiboot.images.contract import LIVE, MEANING, STATIC, Point, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 114

OPENING = """\
# What an image must offer to run in an MPI job

`mpiboot images check IMAGE` tries all of this on real containers, for any image, in seconds. This page is made from
the table that it uses, `images/contract.py`. A test compares the two.

## Three ways to run an image

An image supports a profile if it meets the points of that profile and of the easier profiles, and a small trial job
succeeds. `--require` names the profile that decides the exit code: 0 if the image supports it, 1 if not. An image that
cannot be checked gets one line and exit code 2 instead of a report: it does not exist, is made for other machines, or
has no shell.
"""

LIVE_OPENING = """\
## What the trial job does

For each profile, two containers run on a network of their own, with a new client key and a new host key, mounted as a
job mounts them. The worker starts as a job would start it: by the image's own entrypoint if that is mpiboot's, else by
an sshd command that puts the job's host key first. The launcher accepts only that host key.

If the image lacks what a step needs, such as Python for the allreduce, the report says "not checked"; this is no fault.
What still runs after `--limit` seconds is stopped and reported as a fault, and the points after it as not checked.
"""

CLOSING = """\
## What a hostile image cannot do

The containers have no way to other networks, at most 2 GB of memory, 4,096 processes, 2 CPUs and 1 MB of log each, as
far as the engine supports these limits. The container that the static points look into has two capabilities,
DAC_OVERRIDE and NET_BIND_SERVICE, and gets no new privileges. The checker reads at most 1 MB of what a program prints,
and prints no control characters of an image. The disk space of a container is not limited.

## What the checker leaves behind

Nothing. Containers, networks and volumes carry the label `mpiboot.dev/check`, and the checker removes them when it
ends, also after Ctrl-C or SIGTERM. After a SIGKILL they stay; `docker ps -a --filter label=mpiboot.dev/check` lists
them, and the launchers among them end after an hour.
"""


def page() -> str:
    """The whole page, as Markdown."""
    profiles = "".join(_item(f"**{profile.word}**: {MEANING[profile]}.") for profile in Profile)
    static = "".join(_section(title, needed) for title, needed in _groups())
    return f"{OPENING}\n{profiles}\n{static}{LIVE_OPENING}\n{_list(LIVE)}\n{CLOSING}"


def _groups() -> Iterable[tuple[str, Profile | None]]:
    yield from ((f"Needed by `{profile.word}`", profile) for profile in Profile)
    yield "Advice: no job fails without it", None


def _section(title: str, needed: Profile | None) -> str:
    return f"## {title}\n\n{_list(point for point in STATIC if point.needed_by is needed)}\n"


def _list(points: Iterable[Point]) -> str:
    return "".join(_item(f"`{p.id}`: {p.must}", f"Why: {p.reason}", f"Fix: {p.fix}") for p in points)


def _item(*lines: str) -> str:
    """An item of a list; its lines stay apart, as a reader looks for the fix."""
    wrapped = [
        textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in lines
    ]
    return "- " + "<br>\n  ".join(wrapped) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
