"""The API server of these tests knows MPIJobs."""

from __future__ import annotations

from tests.controller.conftest import client

__all__ = ["client"]
