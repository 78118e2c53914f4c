"""A pod's security contexts as options of a container. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

HONOURED = frozenset({
    "runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "capabilities",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "sysctls", "seccompProfile",
})  # fmt: skip


@dataclass(frozen=True)
class Security:
    """Who a container runs as and what it may do. None: what the image says."""

    user: str | None = None
    groups: tuple[int, ...] = ()
    non_root: bool = False  # refuse an image that runs as root
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    read_only: bool = False
    options: tuple[str, ...] = ()
    sysctls: tuple[tuple[str, str], ...] = ()


def security(pod: Mapping[str, Any], container: Mapping[str, Any], unmet: list[str]) -> Security:
    """The container's security context over the pod's. Other fields are named in `unmet`."""
    whole = pod["spec"].get("securityContext") or {}
    own = container.get("securityContext") or {}
    merged = {**whole, **own}
    unmet += [f"securityContext.{key}" for key, value in merged.items() if key not in HONOURED and value]
    user, group = merged.get("runAsUser"), merged.get("runAsGroup")
    if user is None and group is not None:
        unmet.append("securityContext.runAsGroup without runAsUser")
    capabilities = merged.get("capabilities") or {}
    groups = [*(merged.get("supplementalGroups") or ()), *([whole["fsGroup"]] if "fsGroup" in whole else ())]
    return Security(
        user=None if user is None else f"{user}" if group is None else f"{user}:{group}",
        groups=tuple(int(one) for one in groups),
        non_root=bool(merged.get("runAsNonRoot")),
        add=tuple(capabilities.get("add") or ()),
        drop=tuple(capabilities.get("drop") or ()),
        read_only=bool(merged.get("readOnlyRootFilesystem")),
        options=_options(merged, unmet),
        sysctls=tuple((str(one["name"]), str(one["value"])) for one in merged.get("sysctls") or ()),
    )


def _options(merged: Mapping[str, Any], unmet: list[str]) -> tuple[str, ...]:
    options = []
    if merged.get("allowPrivilegeEscalation") is False:
        options.append("no-new-privileges")
    profile = (merged.get("seccompProfile") or {}).get("type", "RuntimeDefault")
    if profile == "Unconfined":
        options.append("seccomp=unconfined")
    elif profile != "RuntimeDefault":
        unmet.append(f"securityContext.seccompProfile.type {profile}")
    return tuple(options)
