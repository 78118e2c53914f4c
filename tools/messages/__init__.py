"""Writes docs/reference/messages.md: every text that mpiboot prints, logs or sends."""
