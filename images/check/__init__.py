"""Checks on real containers whether an image fulfils the contract, and reports what to change if it does not."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from mpiboot.containers.client import docker_cli
from mpiboot.images.check import accounts, static_points, trial_files
from mpiboot.images.check import image as images
from mpiboot.images.check.cutoff import Cutoff
from mpiboot.images.check.outcome import Report
from mpiboot.images.check.runtime import OUR_FILES
from mpiboot.images.check.sandbox import LABEL, ContainerSpec, Sandbox
from mpiboot.images.check.subject import Subject, read_file
from mpiboot.images.check.trial import SLEEP, Setting, TrialRun
from mpiboot.images.contract import Profile
from mpiboot.images.engine_errors import is_about_the_engine, reason
from mpiboot.job.errors import UserError
from mpiboot.ssh.keys import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import docker

    from mpiboot.images.check.image import Image
    from mpiboot.images.check.outcome import Finding

# Long for an image that works (5 to 10 s). The report names the step that was running when this time was over.
LIMIT_SECONDS = 60.0


# The options of the container for the static points. Its root may read every file, and may start a sshd with the file
# capability that some images set; no program of the image gets more rights there.
READER = {
    "cap_drop": ["ALL"],
    "cap_add": ["DAC_OVERRIDE", "NET_BIND_SERVICE"],
    "security_opt": ["no-new-privileges"],
}


def check(
    client: docker.DockerClient,
    name: str,
    say: Callable[[str, str], None],
    limit: float = LIMIT_SECONDS,
) -> Report:
    """Check the image of that name. Raises UserError if the check is not possible.

    It calls `say(profile, step)` for each step, from any thread. No container stays on return, nor after Ctrl-C.
    """
    from docker.errors import DockerException
    from requests import RequestException

    docker_cli()  # the checks call it: if it is missing, this fails before anything starts
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
            raise UserError(f"the Docker engine failed during the check: {error}; {left}") from error


def _check(
    image: Image, sandbox: Sandbox, pool: ThreadPoolExecutor, say: Callable[[str, str], None], limit: float
) -> Report:
    started = time.monotonic()
    sandbox.open()
    subject = _subject(image, sandbox)
    findings = pool.submit(_static, subject, lambda what: say("image", what))
    allreduce_lock = threading.Lock()
    runs = {profile: _trial_run(subject, profile, allreduce_lock, say) for profile in Profile}
    trials = {profile: pool.submit(run.run) for profile, run in runs.items()}
    cutoffs = {trials[profile]: runs[profile].cutoff for profile in Profile}
    _end_late_ones({findings: subject.cutoff, **cutoffs}, limit)
    return Report(
        image=image,
        findings=findings.result(),
        trials=tuple(trials[profile].result() for profile in Profile),
        seconds=time.monotonic() - started,
        unfinished=subject.cutoff.why,
    )


def _subject(image: Image, sandbox: Sandbox) -> Subject:
    """Make the container for the static points and read its /etc/passwd. It need not run for that."""
    keys = trial_files.keys("worker", generate(), as_root=True)
    files = {OUR_FILES: keys}
    spec = ContainerSpec("image", image.id, entrypoint=SLEEP, user="0:0", files=files, options=READER)
    container = sandbox.create(spec)
    cutoff = Cutoff(sandbox)
    cutoff.watch(container)
    known = accounts.parse(read_file(container, "/etc/passwd"))
    return Subject(image, container, sandbox, cutoff, accounts.of_user(image.user, known), accounts.unknown_uid(known))


def _static(subject: Subject, say: Callable[[str], None]) -> tuple[Finding, ...]:
    from docker.errors import APIError

    try:
        subject.sandbox.start(subject.container)
    except APIError as error:
        if is_about_the_engine(error):
            raise
        if subject.cutoff.why is None:  # otherwise the time limit removed it
            raise images.without_shell(subject.image, reason(error)) from None
    return static_points.check(subject, say)


def _trial_run(
    subject: Subject, profile: Profile, allreduce_lock: threading.Lock, say: Callable[[str, str], None]
) -> TrialRun:
    account = subject.account
    # A manifest for this image mounts the keys there: in the home of its user.
    home = account.home if account else subject.image.environment.get("HOME", "/root")
    setting = Setting(
        image=subject.image,
        profile=profile,
        any_uid=subject.any_uid,
        as_root=profile is Profile.OWN and account is not None and account.uid == 0,
        key_directory=f"{home.rstrip('/')}/.ssh",
        keys=generate(),
        allreduce_lock=allreduce_lock,
    )
    return TrialRun(setting, subject.sandbox, lambda what: say(profile.word, what))


def _end_late_ones(works: Mapping[Future[Any], Cutoff], limit: float) -> None:
    """Wait for all. At the time limit, end those that still run; their results name the step that ran."""
    wait(works, timeout=limit)
    for work, cutoff in works.items():
        if not work.done():
            cutoff.expire(f"no end after {limit:.0f} s (--limit)")
