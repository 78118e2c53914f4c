"""Builds several rows at once, each after its base. Tags and labels come from the version in the built image."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.images.build import context, docker_command
from mpiboot.images.build.base import OFFICIAL, is_debian, last_line, native
from mpiboot.images.build.build_output import Steps
from mpiboot.images.build.built_version import version as version_of
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import docker

    from mpiboot.images.build.build_output import Step
    from mpiboot.images.build.progress import Progress
    from mpiboot.images.matrix import Image, Matrix

# Steps wait for the network about as often as they compute, and the engine runs a step of two builds once.
PARALLEL_BUILDS = 1 + (os.cpu_count() or 1)


BUILDKIT = docker_command.environment(os.environ)


@dataclass(frozen=True)
class Built:
    """An image that the engine has now, with its tags."""

    row: Image
    version: str
    tags: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class CustomBase:
    """The user's own base for a row, and the user's own name, with a tag, for the result."""

    image: str
    tag: str


class Builder:
    """Builds rows with one engine. However `build` ends, no build continues and no draft image stays."""

    def __init__(
        self, engine: docker.DockerClient, matrix: Matrix, progress: Progress, *, again: bool = False
    ) -> None:
        self._engine = engine
        self._matrix = matrix
        self._progress = progress
        self._again = again
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(PARALLEL_BUILDS)
        self._stopped = False

    def build(
        self, rows: Sequence[Image], custom: CustomBase | None = None, *, fresh: bool = False
    ) -> tuple[Built, ...]:
        """Build these rows, after their bases. The first failure ends the other builds."""
        wanted = tuple(rows) if custom else self._matrix.with_parents(rows)
        # The build steps themselves also run on the first one.
        named = [OFFICIAL, *(row.base for row in wanted if row.base and is_debian(row.base) and not custom)]
        bases = {name: native(self._engine, self._progress.log, name, fresh=fresh) for name in dict.fromkeys(named)}
        with context.build_context() as folder, ThreadPoolExecutor(max_workers=len(wanted)) as pool:
            started: dict[str, Future[Built]] = {}
            try:
                for row in wanted:
                    parent = self._matrix.parent(row) if not custom else None
                    before = started[parent.name] if parent else None
                    started[row.name] = pool.submit(self._row, folder, row, bases, before, custom)
                done, _ = wait(started.values(), return_when=FIRST_EXCEPTION)
                for failed in (future for future in done if future.exception()):
                    failed.result()
            finally:
                self._stop()
        return tuple(future.result() for future in started.values())

    def _row(
        self,
        folder: Path,
        row: Image,
        bases: Mapping[str, str],
        parent: Future[Built] | None,
        custom: CustomBase | None,
    ) -> Built:
        named = row.base or OFFICIAL
        base = custom.image if custom else parent.result().tags[0] if parent else bases.get(named, named)
        name = custom.tag if custom else row.name
        draft = f"{row.repository}:building-{os.getpid()}"
        with self._slots:
            self._progress.begin(name)
            try:
                stages, target = docker_command.stages(row, bases[OFFICIAL], base), docker_command.target(row)
                self._run(name, docker_command.build(folder, draft, stages, target, again=self._again))
                built = self._publish(row, draft, base, custom)
            except BaseException:
                self._progress.end(name, "stopped" if self._stopped else "failed")
                raise
            finally:
                self._remove(draft)
            self._progress.end(name, f"{built.tags[-1]}, {built.size / 1e6:.1f} MB")
        return built

    def _run(self, name: str, argv: list[str]) -> None:
        """Run one build to its end. If it fails, show the log of the failed step, and no other log."""
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
            raise UserError(f"{name}: mpiboot stopped the build")

    def _failure(self, name: str, steps: Steps) -> UserError:
        step: Step | None = steps.failed
        if step is None:
            return UserError(f"{name}: the engine did not build the image: {last_line(chr(10).join(steps.other))}")
        self._progress.log("\n".join(f"  {name} | {line}" for line in step.log))
        return UserError(f"{name}: the step '{step.name}' failed{hint(step.log)}; its log is above")

    def _publish(self, row: Image, draft: str, base: str, custom: CustomBase | None) -> Built:
        """Label the draft with its version and tag it, unless the tags name an equal image already."""
        version = version_of(self._engine, row, draft)
        labels = docker_command.labels(row, base, version)
        tags = (custom.tag,) if custom else (row.latest, f"{row.repository}:{version}")
        if not self._is_up_to_date(tags, draft, labels):
            before = self._identity(tags[0])
            argv, dockerfile = docker_command.relabel(tags[0], labels), f"FROM {draft}\n"
            done = subprocess.run(argv, input=dockerfile, capture_output=True, text=True, env=BUILDKIT, check=False)
            if done.returncode != 0:
                raise UserError(f"{row.name}: the engine did not label the image: {last_line(done.stderr)}")
            image = self._engine.images.get(tags[0])
            for tag in tags[1:]:
                image.tag(*tag.rsplit(":", 1))
            if before and before != image.id:
                self._remove_untagged(before)
        return Built(row, version, tags, int(self._engine.images.get(tags[0]).attrs["Size"]))

    def _is_up_to_date(self, tags: Sequence[str], draft: str, labels: dict[str, str]) -> bool:
        """Whether all tags name an image of this content. It then keeps its id: containers and caches stay valid."""
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
        """Remove a tag, or an image without a tag. The engine keeps an image that a container uses."""
        from docker.errors import APIError

        try:
            self._engine.images.remove(reference, noprune=True)
        except APIError:
            return

    def _remove_untagged(self, identity: str) -> None:
        """Remove an image that has no tag. The removal would also delete a tag, and the tag may be a user's."""
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
    """The reason in the log of a failed step, if the user can do something about it."""
    text = "\n".join(log)
    if re.search(r"no space left on device", text, re.IGNORECASE):
        return " because the disk of the engine is full (docker system df shows what fills it)"
    if re.search(r"certificate verify failed|CERTIFICATE_VERIFY_FAILED", text):
        return " because it does not trust a certificate (SSL_CERT_FILE names the certificates for builds)"
    if re.search(r"Temporary failure resolving|Could not resolve|Name or service not known", text):
        return " because it has no network (builds take a proxy from http_proxy and https_proxy)"
    code = re.search(r"exit code: (\d+)", text)
    return f" with exit code {code[1]}" if code else ""
