"""Starting and ending the node is tested where it does not run: other tests share the one of `make cluster`."""

from __future__ import annotations

import os

# CI sets it for a run of its own, before it starts the node that all other tests use.
collect_ignore = [] if os.environ.get("MPIBOOT_TEST_NODE") else ["test_up_and_down.py"]
