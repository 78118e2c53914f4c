"""The names under which containers find a job's keys. Alone here: process 1 reads no more than it needs."""

from __future__ import annotations

PRIVATE = "id_rsa"
# Beside it where nobody knows as whom the image runs: root refuses a key that all can read, others cannot read root's.
ANY_USERS = "any-user/id_rsa"

# Variables of a worker whose pod mounts nothing.
HOST_KEY = "MPIBOOT_HOST_KEY"
AUTHORIZED_KEYS = "MPIBOOT_AUTHORIZED_KEYS"
