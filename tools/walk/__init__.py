"""Counts the files that a reader passes from a user's command to what it starts."""
