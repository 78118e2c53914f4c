"""Fresh SSH material for a job: a client pair for the launcher, a host pair for the workers, a token."""

from __future__ import annotations

import secrets
from typing import Literal

from mpiboot.job.plan.ssh_material import SshMaterial

# ecdsa is for machines under FIPS rules, where Ed25519 may be switched off.
KeyType = Literal["ed25519", "ecdsa"]


def generate(key_type: KeyType = "ed25519") -> SshMaterial:
    """Two key pairs as OpenSSH texts, never used before, and a token of 256 random bits. Nothing is written."""
    client_private, client_public = _pair(key_type, "mpiboot-launcher")
    host_private, host_public = _pair(key_type, "mpiboot-worker")
    return SshMaterial(
        client_private=client_private,
        client_public=client_public,
        host_private=host_private,
        host_public=host_public,
        token=secrets.token_urlsafe(32),
    )


def _pair(key_type: KeyType, comment: str) -> tuple[str, str]:
    # Late: this costs a tenth of a second, which the start of a container has no use for.
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = ed25519.Ed25519PrivateKey.generate() if key_type == "ed25519" else ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private.decode(), f"{public.decode()} {comment}\n"
