"""One real login, to find out what is wrong with a host. Used only after a failure, or on request."""

# paramiko takes 0.2 s to import, so only the functions below do.
from __future__ import annotations

import base64
import fnmatch
import hashlib
import importlib
import socket
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mpiboot.ssh.failure import Failure, Kind, of_errno

if TYPE_CHECKING:
    from types import ModuleType

    import paramiko


class Account(NamedTuple):
    """The user, the key, and the host keys that are accepted. Without `known_hosts` any host key is.

    Without `identity` there is no login: only the host's key is checked.
    """

    user: str
    identity: str
    known_hosts: str


def log_in(name: str, address: str, port: int, account: Account, within: float) -> Failure | None:
    """None if the login works; nothing is run there. Blocks for at most about `within` seconds a step."""
    try:
        sock = socket.create_connection((address, port), timeout=within)
    except TimeoutError:
        return Failure(Kind.TIMED_OUT, f"no answer to the connection within {within:g} s")
    except OSError as error:
        return of_errno(error.errno or 0, error.strerror or str(error))
    with sock:
        return _over(sock, name, account, within)


def accepted_keys(name: str, known_hosts: str) -> tuple[tuple[str, str], ...]:
    """The (type, key) pairs that a known_hosts text accepts from this host. Hashed names are none of ours."""
    found = []
    for line in known_hosts.splitlines():
        words = line.split()
        if len(words) >= 3 and not words[0].startswith(("#", "@", "|")):
            patterns = words[0].split(",")
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                found.append((words[1], words[2]))
    return tuple(found)


def _over(sock: socket.socket, name: str, account: Account, within: float) -> Failure | None:
    library = _paramiko()
    transport: paramiko.Transport = library.Transport(sock)
    transport.banner_timeout = transport.auth_timeout = transport.handshake_timeout = within
    try:
        accepted = accepted_keys(name, account.known_hosts)
        if accepted:
            _prefer(transport, [kind for kind, _ in accepted])
        transport.start_client(timeout=within)
        if not transport.initial_kex_done:
            return Failure(Kind.TIMED_OUT, f"connected, no key exchange within {within:g} s")
        shown = transport.get_remote_server_key()
        if account.known_hosts and (shown.get_name(), shown.get_base64()) not in accepted:
            return Failure(Kind.HOST_KEY, f"shows {shown.get_name()} {_fingerprint(shown)}, which is not the job's")
        if account.identity:
            transport.auth_publickey(account.user, _private_key(library, account.identity))
    except library.AuthenticationException as error:
        return Failure(Kind.AUTHENTICATION, f"{account.user} cannot log in with the job's key ({error})")
    except library.IncompatiblePeer as error:
        if "host key" in str(error).lower():
            return Failure(Kind.HOST_KEY, "has no host key of the job's type")
        return Failure(Kind.NOT_SSH, str(error))
    except (library.SSHException, EOFError, OSError, ValueError) as error:
        return _unfinished(error)
    finally:
        transport.close()
    return None


def _private_key(library: ModuleType, path: str) -> paramiko.PKey:
    # PKey.from_path and PKey.fingerprint are of paramiko 3.2; Debian 12 and Ubuntu 24.04 have 2.12.
    for kind in (library.RSAKey, library.ECDSAKey, library.Ed25519Key):
        with suppress(library.SSHException, ValueError):
            key: paramiko.PKey = kind.from_private_key_file(path)
            return key
    raise library.SSHException(f"{path} holds no private key that paramiko can read")


def _fingerprint(key: paramiko.PKey) -> str:
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def _prefer(transport: paramiko.Transport, kinds: list[str]) -> None:
    """Have the server show a key of a type that we know, as ssh does."""
    options = transport.get_security_options()
    rsa = ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"]
    wanted = [k for kind in kinds for k in (rsa if kind == "ssh-rsa" else [kind])]
    options.key_types = [kind for kind in dict.fromkeys(wanted) if kind in options.key_types] or options.key_types


def _unfinished(error: Exception) -> Failure:
    text = str(error).strip() or type(error).__name__
    if "banner" in text.lower():
        return Failure(Kind.NOT_SSH, text)
    if isinstance(error, TimeoutError) or "timed out" in text.lower() or "timeout" in text.lower():
        return Failure(Kind.TIMED_OUT, text)
    if isinstance(error, OSError) and error.errno:
        return of_errno(error.errno, error.strerror or text)
    return Failure(Kind.AUTHENTICATION, f"the login did not finish: {text}")


def _paramiko() -> ModuleType:
    import logging

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about ciphers that it offers and we do not use
        paramiko = importlib.import_module("paramiko")
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    logging.getLogger("paramiko").propagate = False
    return paramiko
