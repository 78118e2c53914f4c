"""Processes and signals: start, reap, log events, last words."""
