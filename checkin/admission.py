"""Which connection the server closes when too many have not proven yet that they belong to a job."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Admission:
    """At most `limit` unproven connections. One too many closes the oldest of the source that has most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._by_source: dict[str, OrderedDict[object, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return self._count

    def enter(self, source: str, key: object, cut: Callable[[], None]) -> None:
        """Admit a connection. `cut` is called, once, if the connection has to be closed."""
        self._by_source.setdefault(source, OrderedDict())[key] = cut
        self._count += 1
        if self._count > self._limit:
            crowd = max(self._by_source, key=lambda each: len(self._by_source[each]))
            oldest, give_up = next(iter(self._by_source[crowd].items()))
            self.leave(crowd, oldest)
            give_up()

    def leave(self, source: str, key: object) -> None:
        """The connection has proven itself, or has ended; may be called again."""
        connections = self._by_source.get(source)
        if connections is None or connections.pop(key, None) is None:
            return
        self._count -= 1
        if not connections:
            del self._by_source[source]
