"""The names of a job's private key where it is mounted. Alone here: process 1 reads no more than it needs."""

from __future__ import annotations

PRIVATE = "id_rsa"
# Beside it where nobody knows as whom the image runs: root refuses a key that all can read, others cannot read root's.
ANY_USERS = "any-user/id_rsa"
