"""Builds: rows side by side, each after its base; tags and labels by what the built image answers about itself."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.images import command, context
from mpiboot.images.base import OFFICIAL, is_debian, last_line, native
from mpiboot.images.steps import Steps
from mpiboot.images.version import version as version_of
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import docker

    from mpiboot.images.matrix import Image, Matrix
    from mpiboot.images.progress import Progress
    from mpiboot.images.steps import Step

# Steps wait for the network about as often as they compute, and those that two builds share are done once.
SIDE_BY_SIDE = 1 + (os.cpu_count() or 1)


BUILDKIT = command.environment(os.environ)


class BuildError(UserError):
    """A build did not end with an image. Its log has been shown."""


@dataclass(frozen=True)
class Built:
    """An image that the engine has now, and the tags it got."""

    row: Image
    version: str
    tags: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class OnBase:
    """The user's wish to have a row on an image of their own, under a name of their own with its tag."""

    image: str
    tag: str


class Builder:
    """Builds rows with one engine. However `build` is left, no build goes on and no draft stays."""

    def __init__(
        self, engine: docker.DockerClient, matrix: Matrix, progress: Progress, *, again: bool = False
    ) -> None:
        self._engine = engine
        self._matrix = matrix
        self._progress = progress
        self._again = again
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(SIDE_BY_SIDE)
        self._stopped = False

    def build(self, rows: Sequence[Image], on: OnBase | None = None, *, fresh: bool = False) -> tuple[Built, ...]:
        """The images of these rows, after those that they are built on. The first failure ends the other builds."""
        wanted = tuple(rows) if on else self._matrix.with_parents(rows)
        # The first is also what the steps themselves are made with.
        named = [OFFICIAL, *(row.base for row in wanted if row.base and is_debian(row.base) and not on)]
        bases = {name: native(self._engine, self._progress.tell, name, fresh=fresh) for name in dict.fromkeys(named)}
        with context.build_context() as folder, ThreadPoolExecutor(max_workers=len(wanted)) as pool:
            started: dict[str, Future[Built]] = {}
            try:
                for row in wanted:
                    parent = self._matrix.parent(row) if not on else None
                    before = started[parent.name] if parent else None
                    started[row.name] = pool.submit(self._row, folder, row, bases, before, on)
                done, _ = wait(started.values(), return_when=FIRST_EXCEPTION)
                for failed in (future for future in done if future.exception()):
                    failed.result()
            finally:
                self._stop()
        return tuple(future.result() for future in started.values())

    def _row(
        self, folder: Path, row: Image, bases: Mapping[str, str], before: Future[Built] | None, on: OnBase | None
    ) -> Built:
        named = row.base or OFFICIAL
        base = on.image if on else before.result().tags[0] if before else bases.get(named, named)
        name = on.tag if on else row.name
        draft = f"{row.repository}:building-{os.getpid()}"
        with self._slots:
            self._progress.begin(name)
            try:
                stages, target = command.stages(row, bases[OFFICIAL], base), command.target(row)
                self._run(name, command.build(folder, draft, stages, target, again=self._again))
                built = self._publish(row, draft, base, on)
            except BaseException:
                self._progress.end(name, "stopped" if self._stopped else "failed")
                raise
            finally:
                self._remove(draft)
            self._progress.end(name, f"{built.tags[-1]}, {built.size / 1e6:.1f} MB")
        return built

    def _run(self, name: str, argv: list[str]) -> None:
        """Run one build to its end; of a failed one the log of the failing step is shown, and only that."""
        steps = Steps()
        # A session of its own: Ctrl-C reaches this program alone, which then ends all builds in order.
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=BUILDKIT, start_new_session=True
        )
        with self._lock:
            self._running.add(process)
            if self._stopped:
                process.terminate()
        assert process.stdout is not None
        for line in process.stdout:
            step = steps.read(line.rstrip("\n"))
            if step is not None:
                self._progress.step(name, step)
        code = process.wait()
        with self._lock:
            self._running.discard(process)
        if code != 0 and not self._stopped:
            raise self._failure(name, steps)
        if code != 0:
            raise BuildError(f"{name}: the build was stopped")

    def _failure(self, name: str, steps: Steps) -> BuildError:
        step: Step | None = steps.failed
        if step is None:
            return BuildError(f"{name}: the engine did not build it: {last_line(chr(10).join(steps.loose))}")
        self._progress.tell("\n".join(f"  {name} | {line}" for line in step.log))
        return BuildError(f"{name}: the step '{step.name}' failed{hint(step.log)}; its log is above")

    def _publish(self, row: Image, draft: str, base: str, on: OnBase | None) -> Built:
        """Label the draft with what it says about itself and tag it, unless the tags stand for the same already."""
        version = version_of(self._engine, row, draft)
        labels = command.labels(row, base, version)
        tags = (on.tag,) if on else (row.latest, f"{row.repository}:{version}")
        if not self._is_up_to_date(tags, draft, labels):
            before = self._identity(tags[0])
            argv, dockerfile = command.relabel(tags[0], labels), f"FROM {draft}\n"
            done = subprocess.run(argv, input=dockerfile, capture_output=True, text=True, env=BUILDKIT, check=False)
            if done.returncode != 0:
                raise BuildError(f"{row.name}: the engine did not label the image: {last_line(done.stderr)}")
            image = self._engine.images.get(tags[0])
            for tag in tags[1:]:
                image.tag(*tag.rsplit(":", 1))
            if before and before != image.id:
                self._forget(before)
        return Built(row, version, tags, int(self._engine.images.get(tags[0]).attrs["Size"]))

    def _is_up_to_date(self, tags: Sequence[str], draft: str, labels: dict[str, str]) -> bool:
        """An image whose content is the same keeps its identity: containers and caches that use it stay valid."""
        wanted = self._content(draft)
        wanted["Labels"] = {**(wanted["Labels"] or {}), **labels}
        return all(self._identity(tag) and self._content(tag) == wanted for tag in tags)

    def _content(self, tag: str) -> dict[str, Any]:
        attributes = self._engine.images.get(tag).attrs
        keys = ("Env", "Entrypoint", "Cmd", "User", "WorkingDir", "Labels")
        return {"layers": attributes["RootFS"]["Layers"], **{key: attributes["Config"].get(key) for key in keys}}

    def _identity(self, tag: str) -> str | None:
        from docker.errors import ImageNotFound

        try:
            return self._engine.images.get(tag).id
        except ImageNotFound:
            return None

    def _remove(self, reference: str) -> None:
        """Remove a tag, or an image without one; one that is in use stays, as the engine decides."""
        from docker.errors import APIError

        try:
            self._engine.images.remove(reference, noprune=True)
        except APIError:
            return

    def _forget(self, identity: str) -> None:
        """Remove an image that nobody has a name for. One with a name would lose it: a person may have given it."""
        from docker.errors import ImageNotFound

        with contextlib.suppress(ImageNotFound):
            if not self._engine.images.get(identity).tags:
                self._remove(identity)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()


def hint(log: Sequence[str]) -> str:
    """What the log of a failed step says that a person can do something about."""
    text = "\n".join(log)
    if re.search(r"no space left on device", text, re.IGNORECASE):
        return " because the disk of the engine is full (docker system df shows by what)"
    if re.search(r"certificate verify failed|CERTIFICATE_VERIFY_FAILED", text):
        return " because a certificate is not trusted (SSL_CERT_FILE names those that the build may use)"
    if re.search(r"Temporary failure resolving|Could not resolve|Name or service not known", text):
        return " because it has no network (a proxy is taken from http_proxy and https_proxy)"
    code = re.search(r"exit code: (\d+)", text)
    return f" with exit code {code[1]}" if code else ""
