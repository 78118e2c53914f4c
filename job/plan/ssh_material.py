"""The SSH keys and the token of one job, as texts. `mpiboot.ssh.keys` makes them, the plan puts them into a Secret."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SshMaterial:
    """Two key pairs in OpenSSH's formats, and the token that workers and launcher show to the check-in service.

    The client pair logs in: its private half belongs to the launcher. The host pair proves who a worker is: its private
    half belongs to the workers. Secrets have no place in logs, so `repr` leaves them out.
    """

    client_private: str = field(repr=False)
    client_public: str
    host_private: str = field(repr=False)
    host_public: str
    token: str = field(repr=False)
