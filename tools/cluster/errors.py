"""The error that ends a command with a message instead of a stack trace."""


class ClusterError(Exception):
    """Its text says what failed, why, and what to do."""
