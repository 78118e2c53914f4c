"""Defaults by which an elastic horovodrun survives the loss of a worker, where its user sets no others. Pure."""

# The figures behind the defaults: docs/how-to/elastic.md.
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

PROGRAM = "horovodrun"
COOLDOWN = "--blacklist-cooldown-range"
SLOTS = "--slots-per-host"
# The second name is of older releases.
INTERFACES = ("--network-interface", "--network-interfaces")
# Gloo waits this long for a silent rank. After a loss, training stands still for this time if a neighbour has noticed
# the loss and the rank itself has not. Horovod gives a joining rank the same time, and then ends the whole job: a short
# time-out is safe only with the patch in our images.
GLOO_TIMEOUT, SHORT, HOROVODS_OWN = "HOROVOD_GLOO_TIMEOUT_SECONDS", "4", "30"
JOINERS = "MPIBOOT_HOROVOD_JOINERS"
# Without a range horovodrun never uses the name of a failed worker again, and a replaced worker has the same name.
# horovodrun doubles the first number before each pause. Dead workers leave the list before the first pause ends.
COOLDOWN_RANGE = ("5", "20")


def is_program(word: str) -> bool:
    """Whether the word is horovodrun, or an absolute path to it."""
    return word == PROGRAM or (word.startswith("/") and word.endswith(f"/{PROGRAM}"))


def completed(command: Sequence[str], slots: int, interface: str) -> tuple[str, ...]:
    """The command with the options that its user left out. A horovodrun in a script gets only the environment."""
    program, *rest = command
    if not is_program(program):
        return tuple(command)
    given = {word.partition("=")[0] for word in rest}
    added = [] if COOLDOWN in given else [COOLDOWN, *COOLDOWN_RANGE]
    if SLOTS not in given:  # a discovery script may print bare names, and horovodrun has no default for them
        added += [SLOTS, str(slots)]
    # Without an interface, horovodrun compares those of two hosts, and on one host waits ten minutes for another. The
    # interface needs the same name on the launcher as well, so only the launcher's own can be right.
    if interface and given.isdisjoint(INTERFACES):
        added += [INTERFACES[0], interface]
    return (program, *added, *rest)


def foreign_hosts(command: Sequence[str], known: Collection[str]) -> list[str]:
    """The hosts that a horovodrun names itself and that are not known: guides of other systems have `-H a:2,b:2`."""
    from mpiboot.job import mpi, quick

    named = (value for name, value in quick.own_options(command) if name in mpi.HOST_OPTIONS)
    hosts = (each.partition(":")[0] for value in named for each in value.split(","))
    return [host for host in hosts if host and host not in known]


def with_defaults(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with defaults; variables of the user stay."""
    return {GLOO_TIMEOUT: SHORT if environ.get(JOINERS) == "awaited" else HOROVODS_OWN, **environ}
