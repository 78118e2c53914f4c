"""What the check-in server asks the program that knows the jobs: the operator, or a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mpiboot.checkin.roster import View


@dataclass(frozen=True)
class Credentials:
    """`uid` differs from that of an earlier job of the same name; `token` is the secret of the job's pods."""

    uid: str
    token: str = field(repr=False)


class Authority(Protocol):
    """Knows the jobs. `job` is NAMESPACE/NAME and comes from the network: it may name anything."""

    async def credentials(self, job: str) -> Credentials | None:
        """What a request for the job must prove; None if there is no such job.

        Called once for each job, then only for tokens that do not match, and never twice at once for the same job.
        It may ask an API server. It should answer from memory for a job that it knows not to exist.
        """

    def view(self, job: str) -> View | None:
        """The job as it is now. Called right after `credentials`; later views are pushed to `CheckinServer.observe`."""
