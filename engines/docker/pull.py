"""An image on the engine, pulled if it is missing, and its entrypoint and user."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, DockerException, ImageNotFound
from docker.utils import parse_repository_tag

from mpiboot.engines.engine import CancelledError
from mpiboot.job.errors import UserError
from mpiboot.job.plan.sshd import OUR_ENTRYPOINT

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from docker import APIClient

    from mpiboot.engines.output import Output

MB = 1_000_000


@dataclass(frozen=True)
class Image:
    """`own`: it carries mpiboot and its entrypoint, also if it was only built from one of ours."""

    name: str
    own: bool
    user: str

    @property
    def runs_as_root(self) -> bool:
        return self.user.partition(":")[0] in {"", "0", "root"}


def present(api: APIClient, name: str, policy: str, output: Output, cancelled: Event) -> Image:
    """The image, pulled if it is missing (or always, if that is the policy)."""
    try:
        if policy == "Always":
            _pull(api, name, output, cancelled)
        return _image(name, _inspect(api, name))
    except ImageNotFound:
        if policy == "Never":
            text = f"the image {name} is not on this engine, and imagePullPolicy Never forbids to pull it"
            raise UserError(text) from None
    except APIError as error:
        raise UserError(f"the image {name!r} cannot be used: {error.explanation or error}") from error
    _pull(api, name, output, cancelled)
    return _image(name, _inspect(api, name))


def find(api: APIClient, name: str) -> Image | None:
    """The image, if the engine has it."""
    try:
        return _image(name, _inspect(api, name))
    except APIError:
        return None


def _inspect(api: APIClient, name: str) -> dict[str, Any]:
    return api.inspect_image(name)  # type: ignore[no-untyped-call,no-any-return]


def _image(name: str, found: dict[str, Any]) -> Image:
    config = found.get("Config") or {}
    return Image(name, OUR_ENTRYPOINT in (config.get("Entrypoint") or ()), str(config.get("User") or ""))


def _pull(api: APIClient, name: str, output: Output, cancelled: Event) -> None:
    repository, tag = parse_repository_tag(name)
    output.note(f"pulling the image {name}")
    try:
        progress = Progress(name, output.note)
        for step in api.pull(repository, tag=tag or "latest", stream=True, decode=True):
            if cancelled.is_set():
                raise CancelledError
            if "error" in step:
                raise _unobtainable(name, str(step["error"]))
            progress.step(step)
    except DockerException as error:
        raise _unobtainable(name, str(getattr(error, "explanation", None) or error)) from error


def _unobtainable(name: str, why: str) -> UserError:
    ours = "; mpiboot images list names ours, and mpiboot images build NAME builds one"
    return UserError(
        f"the image {name} is not on this engine and cannot be pulled: {why.strip()}"
        + (ours if name.startswith("mpiboot/") else "; check its name, or log in with: docker login")
    )


class Progress:
    """Prints the progress of a pull when it has changed, at most every two seconds."""

    def __init__(self, name: str, print_line: Callable[[str], None]) -> None:
        self._name, self._print = name, print_line
        self._layers: dict[str, tuple[int, int]] = {}
        self._next = time.monotonic() + 2

    def step(self, step: dict[str, Any]) -> None:
        """Take one message of the engine."""
        detail = step.get("progressDetail") or {}
        if step.get("status") == "Downloading" and detail.get("total"):
            self._layers[step.get("id", "")] = (int(detail.get("current", 0)), int(detail["total"]))
        if self._layers and time.monotonic() >= self._next:
            self._next = time.monotonic() + 2
            done, total = (sum(part) / MB for part in zip(*self._layers.values(), strict=True))
            self._print(f"pulling {self._name}: {done:.0f} of {total:.0f} MB in {len(self._layers)} layers")
