"""What a pod template says: its main container, the words of that container's command, the user that it runs as."""

# Process 1 imports this by way of job/elastic.py: nothing is imported here that takes time.
from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_WORDS = 10_000  # a script may be a command; the options that matter stand before so many words


def spec_of(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return template.get("spec") or {}


def main_index(template: Mapping[str, Any], name: str) -> int:
    """The position of the container that runs the job: the named one, or the first."""
    given = [container.get("name") for container in spec_of(template).get("containers") or ()]
    return given.index(name) if name in given else 0


def main_container(template: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    containers = spec_of(template).get("containers") or [{}]
    found: Mapping[str, Any] = containers[main_index(template, name)]
    return found


def run_as_user(template: Mapping[str, Any], container: Mapping[str, Any]) -> int | None:
    """The uid that the manifest asks for: the container's, else the pod's, else unknown."""
    for context in (container.get("securityContext"), spec_of(template).get("securityContext")):
        if context and context.get("runAsUser") is not None:
            uid: int = context["runAsUser"]
            return uid
    return None


def words(container: Mapping[str, Any]) -> list[str]:
    """Command and arguments, as text."""
    return [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]


def split(words: Iterable[str]) -> list[str]:
    """The words inside each of these, as `bash -c` has a whole command line in one: the first ten thousand, without the
    quotes and semicolons at their ends.
    """
    parts = (part for word in words for part in word.split(None, MOST_WORDS))
    return [part.strip("'\";") for part in islice(parts, MOST_WORDS)]


def has_command(container: Mapping[str, Any]) -> bool:
    return bool(container.get("command") or container.get("args"))


def starts_mpiboot(container: Mapping[str, Any]) -> bool:
    """Whether the command already calls mpiboot."""
    first = (container.get("command") or container.get("args") or ("",))[0]
    return str(first).rpartition("/")[2] == "mpiboot"


def mounted(container: Mapping[str, Any], path: str) -> bool:
    """Whether a container already has something of its own at a path."""
    mounts = container.get("volumeMounts") or ()
    paths = {str(mount.get("mountPath")).rstrip("/") for mount in mounts if isinstance(mount, dict)}
    return path.rstrip("/") in paths
