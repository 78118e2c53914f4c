"""How long a client waits before it tries again."""

import os

FIRST = 0.1  # seconds; a server that restarts is back soon
LONGEST = 5.0


def after(pause: float) -> float:
    return min(2 * pause, LONGEST)


def jittered(pause: float) -> float:
    """Up to a quarter more, so that a thousand workers do not come back at the same moment."""
    return pause * (1 + os.urandom(1)[0] / 1024)
