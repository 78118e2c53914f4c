"""Under which names DNS is asked for a host. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def questions(name: str, search: Sequence[str]) -> tuple[str, ...]:
    """What to ask, in order, until there is an answer.

    A name with dots is asked as an absolute one first: a resolver with `ndots:5` would try it under each search domain
    before, and each of those "no such name" answers is kept by caches on the way. The names of a cluster's services
    end in `.svc`, or before it, where the search list knows the rest.
    """
    if name.endswith("."):
        return (name,)
    if "." not in name:
        return (name,)
    cluster = next((domain.rstrip(".") for domain in search if domain.startswith("svc.")), "")
    longer: tuple[str, ...] = ()
    if cluster and name.endswith(".svc"):
        longer = (f"{name}.{cluster.removeprefix('svc.')}.",)
    elif cluster and not name.endswith(f".{cluster}"):
        longer = (f"{name}.{cluster}.",)
    return (*longer, f"{name}.", name)


def search_list(resolv_conf: str) -> tuple[str, ...]:
    """The search domains of a resolv.conf; the last line of that kind counts."""
    found: tuple[str, ...] = ()
    for line in resolv_conf.splitlines():
        words = line.split()
        if words and words[0] in ("search", "domain"):
            found = tuple(words[1:])
    return found
