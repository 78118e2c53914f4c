"""The API server of these tests knows MPIJobs. The operator of other tests, which watches it all, rests meanwhile."""

from __future__ import annotations

import pytest

from tests.controller.conftest import client, operator, start_operator, unwatched


@pytest.fixture(autouse=True)
def alone(unwatched: None) -> None:
    """No other operator works on these tests' jobs."""


__all__ = ["client", "operator", "start_operator", "unwatched"]
