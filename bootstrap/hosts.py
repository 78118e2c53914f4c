"""Names and addresses of hosts: the values that the wait and the run share. Pure."""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_pton
from typing import NamedTuple

# A name becomes the name of a file, of which Linux takes 255 bytes; DNS takes 253.
_LONGEST_NAME = 253
# What OpenSSH refuses in a user's name, and what could end a word or a line of its configuration.
_NOT_IN_USERS = frozenset("'\"`;&<>|(){}\\ \t\r\n")


class Entry(NamedTuple):
    """A host and how many ranks it takes."""

    name: str
    slots: int


class Endpoint(NamedTuple):
    """How to reach a worker. Port and user are None where no source names them."""

    address: str
    port: int | None = None
    user: str | None = None


def is_address(text: str) -> bool:
    """Whether the text is an IPv4 or an IPv6 address."""
    try:
        inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    except (OSError, ValueError):
        return False
    return True


def is_name(text: str) -> bool:
    """Whether the text can name a host. Names become words of an ssh configuration and names of files."""
    if not text or len(text.encode("utf-8", "replace")) > _LONGEST_NAME or text in (".", "..") or text[0] == "-":
        return False
    return is_address(text) if ":" in text else all(c.isalnum() or c in "._-" for c in text)


def is_user(text: str) -> bool:
    """Whether OpenSSH accepts the text as the name of a user."""
    return bool(text) and text[0] != "-" and text.isprintable() and _NOT_IN_USERS.isdisjoint(text)


def is_own(name: str, hostname: str) -> bool:
    """Whether a name in a hostfile means this host."""
    if name == hostname or name == "localhost":
        return True
    first = name.partition(".")[0]
    return not first.isdigit() and ":" not in name and first == hostname.partition(".")[0]


def short_name(name: str) -> str:
    """The name without its domain. Addresses stay as they are."""
    first = name.partition(".")[0]
    return name if first.isdigit() or ":" in name else first
