"""Jobs on Docker beside those on the node: the fixtures of tests/engines."""

from __future__ import annotations

from tests.engines.conftest import name, nothing_left, start

__all__ = ["name", "nothing_left", "start"]
