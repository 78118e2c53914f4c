"""The error that a user can do something about."""


class UserError(Exception):
    """Its text is what the user reads: what is wrong, where, why, and what to do. Never a stack trace."""

    exit_code = 2
