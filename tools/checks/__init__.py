"""Checks of text that no linter has: the width of lines, and words to avoid."""
