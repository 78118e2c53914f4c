"""Time as manifests write it: whole seconds, UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_now() -> str:
    """For the fields that want microseconds, as those of a Lease do."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_between(first: str, second: str) -> float:
    """How much later the second time of a manifest is than the first."""
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


def seconds_since(text: str) -> float:
    """How long ago a time of a manifest was, by this machine's clock."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()


def seconds_of(text: str) -> float:
    """A time of a manifest in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
