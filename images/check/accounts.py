"""The users of an image, from its /etc/passwd. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# A uid as a cluster picks one: above those that distributions hand out, below those that need 32 bits.
ANY_UID = 12345


@dataclass(frozen=True)
class Account:
    """A line of /etc/passwd."""

    name: str
    uid: int
    home: str
    shell: str


def parse(text: str) -> tuple[Account, ...]:
    """The accounts of a passwd file; without malformed lines, which the C library ignores too."""
    accounts = []
    for line in text.splitlines():
        fields = line.split(":")
        if len(fields) >= 7 and fields[2].isdigit():
            accounts.append(Account(fields[0], int(fields[2]), fields[5], fields[6]))
    return tuple(accounts)


def of_user(user: str, accounts: Iterable[Account]) -> Account | None:
    """The account of USER, with or without a group: `1000:0`, `mpiuser`, or empty (root). None: no such account."""
    name = user.partition(":")[0] or "0"
    return next((account for account in accounts if name in {account.name, str(account.uid)}), None)


def unknown_uid(accounts: Iterable[Account]) -> int:
    """A uid that no account has."""
    taken = {account.uid for account in accounts}
    return next(uid for uid in range(ANY_UID, 2**31) if uid not in taken)
