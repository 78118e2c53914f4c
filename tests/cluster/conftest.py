"""The tests that start and end the node run alone: all other tests share the node of `make cluster`."""

from __future__ import annotations

import os

# CI sets it for a separate run, before it starts the node that all other tests use.
collect_ignore = [] if os.environ.get("MPIBOOT_TEST_NODE") else ["test_up_and_down.py"]
