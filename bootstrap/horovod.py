"""What an elastic horovodrun needs to survive the loss of a worker, where its user has not said otherwise. Pure."""

# The figures behind the defaults: docs/how-to/elastic.md.
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = "horovodrun"
COOLDOWN = "--blacklist-cooldown-range"
SLOTS = "--slots-per-host"
# By the name that older ones know, too.
INTERFACES = ("--network-interface", "--network-interfaces")
# Gloo waits so long for a rank that says nothing: after a loss, training stands still for it where a neighbour has
# noticed and the rank itself has not. Horovod waits no longer for a rank that joins, too, and gives the whole job up
# then; only where that is mended, as in our images, a short time-out is safe.
GLOO_TIMEOUT, SHORT, HOROVODS_OWN = "HOROVOD_GLOO_TIMEOUT_SECONDS", "4", "30"
JOINERS = "MPIBOOT_HOROVOD_JOINERS"
# Without a range a worker that failed once is never used again under its name, and a replaced one has the same name.
# horovodrun doubles the first number before each pause. Dead workers are off the list before the first pause ends.
COOLDOWN_RANGE = ("5", "20")


def is_program(word: str) -> bool:
    """Whether it calls horovodrun: by its name, or by its whole path."""
    return word == PROGRAM or (word.startswith("/") and word.endswith(f"/{PROGRAM}"))


def completed(command: Sequence[str], slots: int, interface: str) -> tuple[str, ...]:
    """The command, with the options that its user left out. A horovodrun in a script gets only the environment."""
    program, *rest = command
    if not is_program(program):
        return tuple(command)
    given = {word.partition("=")[0] for word in rest}
    added = [] if COOLDOWN in given else [COOLDOWN, *COOLDOWN_RANGE]
    if SLOTS not in given:  # a discovery script may print bare names, and horovodrun has no default for them
        added += [SLOTS, str(slots)]
    # Not told of an interface, horovodrun compares those of two hosts, and with one it waits ten minutes for another.
    # What it finds must have the same name on the launcher, too, so ours is the only one that it could be told.
    if interface and given.isdisjoint(INTERFACES):
        added += [INTERFACES[0], interface]
    return (program, *added, *rest)


def with_defaults(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment; what the user set in it stays."""
    return {GLOO_TIMEOUT: SHORT if environ.get(JOINERS) == "awaited" else HOROVODS_OWN, **environ}
