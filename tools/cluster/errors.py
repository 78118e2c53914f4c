"""What ends a command with a message instead of a stack trace."""


class ClusterError(Exception):
    """Says what failed, why, and what to do."""
