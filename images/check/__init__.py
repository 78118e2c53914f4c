"""Can an MPI job run on an image, and if not, why, and what to change? The contract, tried on real containers."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from mpiboot.containers import docker_cli
from mpiboot.images.check import accounts, material, static
from mpiboot.images.check import image as images
from mpiboot.images.check.cutoff import Cutoff
from mpiboot.images.check.outcome import Report
from mpiboot.images.check.runtime import OUR_FILES
from mpiboot.images.check.sandbox import LABEL, Sandbox, Wish, is_engines_own, words_of
from mpiboot.images.check.subject import Subject, read_file
from mpiboot.images.check.trial import SLEEP, Attempt, Setting
from mpiboot.images.contract import Profile
from mpiboot.job.errors import UserError
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import docker

    from mpiboot.images.check.image import Image
    from mpiboot.images.check.outcome import Finding

# Long for an image that works (5 to 10 s); what hangs then is named as what it was doing.
LIMIT_SECONDS = 60.0


class EngineFailedError(UserError):
    """The engine gave an error that has nothing to do with the image."""


def check(
    client: docker.DockerClient,
    name: str,
    say: Callable[[str, str], None],
    limit: float = LIMIT_SECONDS,
) -> Report:
    """Everything about the image of that name; raises BadImageError.

    `say(who, what)` hears of each step, from any thread. All containers are gone on return, also by KeyboardInterrupt.
    """
    from docker.errors import DockerException
    from requests import RequestException

    docker_cli()  # testinfra calls it; its absence is better said before anything starts
    sandbox = Sandbox(client)
    # This thread only waits: an interruption never hits it between a container's creation and the note of it.
    with ThreadPoolExecutor(len(Profile) + 2) as pool:
        try:
            image = images.find(client, name)
            try:
                return pool.submit(_check, image, sandbox, pool, say, limit).result()
            finally:
                sandbox.close()
        except (DockerException, RequestException) as error:
            left = f"look for leftovers with: docker ps -a --filter label={LABEL}"
            raise EngineFailedError(f"the Docker engine failed during the check: {error}; {left}") from error


def _check(
    image: Image, sandbox: Sandbox, pool: ThreadPoolExecutor, say: Callable[[str, str], None], limit: float
) -> Report:
    started = time.monotonic()
    sandbox.open()
    subject = _subject(image, sandbox)
    findings = pool.submit(_static, subject, lambda what: say("image", what))
    turn = threading.Lock()
    attempts = {profile: _attempt(subject, profile, turn, say) for profile in Profile}
    trials = {profile: pool.submit(attempt.run) for profile, attempt in attempts.items()}
    cutoffs = {trials[profile]: attempts[profile].cutoff for profile in Profile}
    _end_late_ones({findings: subject.cutoff, **cutoffs}, limit)
    return Report(
        image=image,
        findings=findings.result(),
        trials=tuple(trials[profile].result() for profile in Profile),
        seconds=time.monotonic() - started,
        unfinished=subject.cutoff.why,
    )


def _subject(image: Image, sandbox: Sandbox) -> Subject:
    """The container for the static points, not started: /etc/passwd can be read all the same."""
    keys = material.keys("worker", generate(), as_root=True)
    container = sandbox.create(Wish("image", image.id, entrypoint=SLEEP, user="0:0", files={OUR_FILES: keys}))
    cutoff = Cutoff(sandbox)
    cutoff.watch(container)
    known = accounts.parse(read_file(container, "/etc/passwd"))
    return Subject(image, container, sandbox, cutoff, accounts.of_user(image.user, known), accounts.unknown_uid(known))


def _static(subject: Subject, say: Callable[[str], None]) -> tuple[Finding, ...]:
    from docker.errors import APIError

    try:
        subject.sandbox.start(subject.container)
    except APIError as error:
        if is_engines_own(error):
            raise
        if subject.cutoff.why is None:  # else it is gone for want of time, whatever is in it
            raise images.without_shell(subject.image, words_of(error)) from None
    return static.check(subject, say)


def _attempt(
    subject: Subject, profile: Profile, turn: threading.Lock, say: Callable[[str, str], None]
) -> Attempt:
    account = subject.account
    # Where a manifest for this image would mount them: in the home of whom it was made for.
    home = account.home if account else subject.image.environment.get("HOME", "/root")
    setting = Setting(
        image=subject.image,
        profile=profile,
        any_uid=subject.any_uid,
        as_root=profile is Profile.OWN and account is not None and account.uid == 0,
        key_directory=f"{home.rstrip('/')}/.ssh",
        keys=generate(),
        turn=turn,
    )
    return Attempt(setting, subject.sandbox, lambda what: say(profile.word, what))


def _end_late_ones(works: Mapping[Future[Any], Cutoff], limit: float) -> None:
    """Wait for all; at the end of time, end those that still run. They then say what they were doing."""
    wait(works, timeout=limit)
    for work, cutoff in works.items():
        if not work.done():
            cutoff.fall(f"no end after {limit:.0f} s (--limit)")
