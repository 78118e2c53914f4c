"""Why an image cannot be pulled, in a few words. The container runtimes' own texts have hundreds of characters."""

from __future__ import annotations

import re
from typing import Any

CANNOT = "cannot pull"
# Reasons of a waiting container. The kubelet shows the second one between two tries.
PULLING = frozenset({
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
    "ImageInspectError", "SignatureValidationFailed",
})  # fmt: skip
# The first pattern that a text holds counts.
CAUSES = (
    (r"couldn't parse image|invalid reference format", "that is no image's name"),
    (r"never pull|pull policy of Never|NeverPull", "it is not on the node, and the pull policy is Never"),
    (r"no match for platform|no matching manifest", "it is not built for the node's kind of processor"),
    (r"no space left on device", "no space left on the node"),
    (r"toomanyrequests|429 Too Many", "the registry limits how often it is asked"),
    (r"(server gave HTTP response to HTTPS client)", "the registry speaks http, and the node wants https"),
    (r"lookup (\S+?)(?: on \S+)?: no such host", "no such host: {}"),
    (r"no such host", "no such host"),
    (r"(connection refused|i/o timeout|network is unreachable|no route to host|context deadline exceeded)", "{}"),
    (r"(x509: [^\"\n]+|tls: [^\"\n]+)", "{}"),
    (r"pull access denied|insufficient_scope|authorization failed|unauthorized|denied|40[13] ",
     "the registry refuses it: it does not exist there, or it needs imagePullSecrets"),
    (r"not found|manifest unknown|name unknown|404 ", "the registry does not have it"),
)  # fmt: skip
LONGEST = 120


def short(container: dict[str, Any]) -> str:
    """What a container's status says about its image; empty if it waits for something else."""
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason, text = waiting.get("reason", ""), waiting.get("message", "")
    if reason not in PULLING:
        return ""
    image = container.get("image") or "its image"
    cause = _cause(f"{reason} {text}")
    return f"{CANNOT} {image}: {cause}" if cause else f"{CANNOT} {image}"


def text_of(container: dict[str, Any]) -> str:
    """The runtime's own words, if its image cannot be pulled."""
    return str(container["state"]["waiting"].get("message", "")) if short(container) else ""


def _cause(text: str) -> str:
    for pattern, words in CAUSES:
        if found := re.search(pattern, text, re.IGNORECASE):
            return words.format(*found.groups())
    # An older kubelet only says that it waits before the next try.
    last = " ".join(text.rpartition(": ")[2].split())
    return "" if "Back-off" in last or ": " not in text else last[:LONGEST]
