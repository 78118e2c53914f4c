"""Points about the users of the containers, the entrypoint and the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.check.host import MissingToolError
from mpiboot.images.check.outcome import Answer, fault, not_applicable, not_checked, ok
from mpiboot.images.check.sandbox import ContainerSpec

if TYPE_CHECKING:
    from mpiboot.images.check.subject import Subject

LABELS = ("org.opencontainers.image.title", "org.opencontainers.image.version")
# An entrypoint that has not run the given command by then does something else.
ENTRYPOINT_SECONDS = 15


def shell(subject: Subject) -> Answer:
    # The container runs `sleep` by this shell. An image without it gets no report: without_shell in image.py.
    return ok(str(subject.as_root.file("/bin/sh").linked_to))


def user(subject: Subject) -> Answer:
    name = subject.image.user.partition(":")[0]
    if name in {"", "0", "root"}:
        return fault("root" if name else "the image names none, which means root")
    return ok(f"USER {subject.image.user}") if name.isdigit() else fault(f"USER {subject.image.user}, a name")


def home(subject: Subject) -> Answer:
    if subject.account is None:
        return not_checked(f"USER {subject.image.user} is not in /etc/passwd")
    path = subject.account.home
    directory = subject.as_root.file(path)
    if not directory.is_directory:
        return fault(f"{path} is missing")
    if not subject.as_any_uid.file(path).is_executable:
        mode = f"{directory.mode:04o} {directory.user}:{directory.group}"
        return fault(f"uid {subject.any_uid} cannot enter {path} ({mode})")
    return ok(path)


def login_shell(subject: Subject) -> Answer:
    if subject.account is None:
        return not_checked(f"USER {subject.image.user} is not in /etc/passwd")
    path = subject.account.shell or "/bin/sh"
    works = subject.run_as_user(f"'{path}' -c 'exit 7'").code == 7
    return ok(path) if works else fault(f"{path} of {subject.account.name} runs nothing")


def any_uid_name(subject: Subject) -> Answer:
    try:
        return ok(f"uid {subject.any_uid} is {subject.as_any_uid.user().name}")
    except MissingToolError:  # `id` prints the number and fails
        return fault(f"uid {subject.any_uid} has no name")


def entrypoint(subject: Subject) -> Answer:
    given = subject.image.entrypoint
    if not given:
        return not_applicable("the image has no entrypoint")
    from requests.exceptions import ConnectionError as Broken
    from requests.exceptions import ReadTimeout

    spec = ContainerSpec("entrypoint", subject.image.id, command=["/bin/sh", "-c", "echo ran-$((6 * 7))"])
    container = subject.sandbox.create(spec)
    subject.cutoff.watch(container)
    subject.sandbox.start(container)
    try:
        container.wait(timeout=ENTRYPOINT_SECONDS)
    except (ReadTimeout, Broken):  # docker-py reports a time-out as either
        return fault(f"{given[0]} did not end")
    output = container.logs(stderr=False).decode(errors="replace")
    return ok(given[0]) if "ran-42" in output else fault(f"{given[0]} ran something else")


def labels(subject: Subject) -> Answer:
    missing = [label for label in LABELS if not subject.image.labels.get(label)]
    if missing:
        return fault(f"no {', no '.join(missing)}")
    return ok(" ".join(subject.image.labels[label] for label in LABELS))
