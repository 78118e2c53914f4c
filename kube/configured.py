"""Whether this user has a cluster at all. It imports nothing that takes time."""

from __future__ import annotations

import os
from pathlib import Path

USUAL = "~/.kube/config"


def is_configured() -> bool:
    """Whether there is a kubeconfig, or this is a pod."""
    named = os.environ.get("KUBECONFIG")
    if not named and "KUBERNETES_SERVICE_HOST" in os.environ:
        return True
    return any(Path(part).expanduser().is_file() for part in (named or USUAL).split(os.pathsep) if part)
