"""The API server of these tests knows MPIJobs. The operator of other tests, which watches it all, rests meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controller.conftest import client
from tests.operators import resting

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with resting():
        yield


__all__ = ["client"]
