"""The text of `discover_hosts.sh`, by which elastic launchers ask what hosts there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpiboot.job.model import Dialect

# `mpiboot launch` keeps it current: a line `host:slots` for each worker whose sshd answers.
LIVE_FILE = "/tmp/mpiboot-$(id -u)/live-hosts"  # noqa: S108 - the script takes it only from its own user
LIVE_FILE_ENV = "MPIBOOT_LIVE_HOSTS"


def script(hosts: Iterable[str], slots: int, dialect: Dialect) -> str:
    """A script that prints the launcher's live file if there is one, else these hosts.

    v1 had `host:slots` on its lines; v2beta1 has bare names, so its live file is printed without the slots.
    """
    bare = dialect == "v2beta1"
    show = "sed 's/:[0-9]*$//'" if bare else "cat"
    lines = "".join(f"echo {host}\n" if bare else f"echo {host}:{slots}\n" for host in hosts)
    # horovodrun takes an empty list for one host without a name, and its discovery never recovers from that. Of a
    # script that fails it says so, and asks again.
    nobody = 'echo "no worker is ready" >&2\nexit 1\n'
    return (
        "#!/bin/sh\n"
        f'live="${{{LIVE_FILE_ENV}:-{LIVE_FILE}}}"\n'
        f'if [ -O "$live" ]; then\n[ -s "$live" ] && exec {show} "$live"\n{nobody}fi\n'
        f"{lines or nobody}"
    )
