"""Who can take ranks of an elastic job just now: written where it is looked up, and told once a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.bootstrap import access, private

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpiboot.bootstrap.config import BootConfig
    from mpiboot.bootstrap.picture import Picture
    from mpiboot.bootstrap.rundir import RunDir
    from mpiboot.ssh.client import Client

_NAMED = 8


class Members:
    """Remembers whom it has published, so that a look at an unchanged picture costs nothing."""

    def __init__(
        self, config: BootConfig, picture: Picture, run: RunDir, client: Client, log: Callable[[str], None]
    ) -> None:
        self._config, self._picture, self._run, self._client, self._log = config, picture, run, client, log
        self._ready = [host.name for host in picture.ready()]
        self._known: list[tuple[object, ...]] = []  # until the first look ssh knows only who was ready

    def look(self) -> None:
        """Publish what is new, and say who came and who went."""
        known = self._places()
        if known != self._known:
            self._known = known
            # First how to reach them, then that they are there.
            access.publish(self._run, self._client, self._picture.hosts.values())
        ready = [host.name for host in self._picture.ready()]
        if sorted(ready) != sorted(self._ready):
            publish_live(self._run, self._picture)
            gone = {host.name: host.why_not for host in self._picture.waiting()}
            self._log(change(self._ready, ready, gone))
            self._ready = ready

    def _places(self) -> list[tuple[object, ...]]:
        return [(host.name, host.place) for host in self._picture.hosts.values()]


def publish_live(run: RunDir, picture: Picture) -> None:
    """The list that `discover_hosts.sh` and `mpiboot hosts` print: workers whose SSH answers, sorted."""
    lines = sorted(f"{host.name}:{host.slots}\n" for host in picture.ready())
    private.write(run.live, "".join(lines))


def change(before: list[str], after: list[str], why_gone: Mapping[str, str]) -> str:
    """`2 -> 3 workers: + worker-2`; of one that went and is still wanted also why."""
    words = [f"+ {short(name)}" for name in after if name not in before]
    for name in before:
        if name not in after:
            why = why_gone.get(name, "")
            words.append(f"- {short(name)}{f' ({why})' if why else ''}")
    more = f", and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return f"{len(before)} -> {len(after)} workers: {', '.join(words[:_NAMED])}{more}"


def short(name: str) -> str:
    """`worker-2` of `train-worker-2.train.default.svc`; other names as they are, without their domain."""
    first = name.partition(".")[0]
    if first.isdigit() or ":" in name:
        return name
    _, worker, number = first.rpartition("-worker-")
    return f"worker-{number}" if worker and number.isdigit() else first
