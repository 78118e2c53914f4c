"""Points about who the containers run as, and about how the image presents itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.check.outcome import Answer, fault, not_applicable, not_checked, ok
from mpiboot.images.check.sandbox import Wish

if TYPE_CHECKING:
    from mpiboot.images.check.subject import Subject

LABELS = ("org.opencontainers.image.title", "org.opencontainers.image.version")
# An entrypoint that has not run `true` by then does something of its own.
ENTRYPOINT_SECONDS = 15


def shell(subject: Subject) -> Answer:
    # The subject sleeps in it; check.py answers for images where it could not.
    return ok(subject.run("readlink -f /bin/sh || echo /bin/sh").out)


def user(subject: Subject) -> Answer:
    name = subject.image.user.partition(":")[0]
    if name in {"", "0", "root"}:
        return fault("root" if name else "none given, which means root")
    return ok(f"USER {subject.image.user}") if name.isdigit() else fault(f"USER {subject.image.user}, a name")


def home(subject: Subject) -> Answer:
    if subject.account is None:
        return not_checked(f"USER {subject.image.user} is not in /etc/passwd")
    path = subject.account.home
    if subject.run(f"test -d '{path}'").code != 0:
        return fault(f"{path} is missing")
    if subject.run_as_any_uid(f"test -x '{path}'").code != 0:
        mode = subject.run(f"stat -c '%A %U:%G' '{path}'").out
        return fault(f"{path} ({mode}) is closed to uid {subject.any_uid}")
    return ok(path)


def login_shell(subject: Subject) -> Answer:
    if subject.account is None:
        return not_checked(f"USER {subject.image.user} is not in /etc/passwd")
    path = subject.account.shell or "/bin/sh"
    works = subject.run_as_user(f"'{path}' -c 'exit 7'").code == 7
    return ok(path) if works else fault(f"{path} of {subject.account.name} runs nothing")


def any_uid_name(subject: Subject) -> Answer:
    found = subject.run_as_any_uid("id -un")
    return ok(f"uid {subject.any_uid} is {found.out}") if found.code == 0 else fault(f"uid {subject.any_uid} has none")


def entrypoint(subject: Subject) -> Answer:
    given = subject.image.entrypoint
    if not given:
        return not_applicable("the image has none")
    from requests.exceptions import ConnectionError as Broken
    from requests.exceptions import ReadTimeout

    wish = Wish("entrypoint", subject.image.id, command=["/bin/sh", "-c", "echo ran-$((6 * 7))"])
    container = subject.sandbox.create(wish)
    subject.cutoff.watch(container)
    subject.sandbox.start(container)
    try:
        container.wait(timeout=ENTRYPOINT_SECONDS)
    except (ReadTimeout, Broken):  # docker-py reports a time-out as either
        return fault(f"{given[0]} did not end")
    said = container.logs(stderr=False).decode(errors="replace")
    return ok(given[0]) if "ran-42" in said else fault(f"{given[0]} ran something else")


def labels(subject: Subject) -> Answer:
    missing = [label for label in LABELS if not subject.image.labels.get(label)]
    if missing:
        return fault(f"no {', no '.join(missing)}")
    return ok(" ".join(subject.image.labels[label] for label in LABELS))
