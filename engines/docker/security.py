"""A pod's security contexts as options of a container. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

SECURITY_FIELDS = frozenset({
    "runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "capabilities",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "sysctls", "seccompProfile",
})  # fmt: skip


# Every container of Docker has these.
USUAL = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """What the user of this machine allows a manifest."""

    host_path: bool = False
    privileges: bool = False


@dataclass(frozen=True)
class Security:
    """The user of a container and its privileges. None: as in the image."""

    user: str | None = None
    groups: tuple[int, ...] = ()
    non_root: bool = False  # refuse an image that runs as root
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    read_only: bool = False
    options: tuple[str, ...] = ()
    sysctls: tuple[tuple[str, str], ...] = ()


def security(
    pod: Mapping[str, Any], container: Mapping[str, Any], allowed: Allowed, ignored: list[str]
) -> Security:
    """The container's security context over the pod's. Other fields are named in `ignored`."""
    whole = pod["spec"].get("securityContext") or {}
    own = container.get("securityContext") or {}
    merged = {**whole, **own}
    ignored += [f"securityContext.{key}" for key, value in merged.items() if key not in SECURITY_FIELDS and value]
    user, group = merged.get("runAsUser"), merged.get("runAsGroup")
    if user is None and group is not None:
        ignored.append("securityContext.runAsGroup without runAsUser")
    capabilities = merged.get("capabilities") or {}
    groups = [*(merged.get("supplementalGroups") or ()), *([whole["fsGroup"]] if "fsGroup" in whole else ())]
    found = Security(
        user=None if user is None else f"{user}" if group is None else f"{user}:{group}",
        groups=tuple(int(one) for one in groups),
        non_root=bool(merged.get("runAsNonRoot")),
        add=tuple(capabilities.get("add") or ()),
        drop=tuple(capabilities.get("drop") or ()),
        read_only=bool(merged.get("readOnlyRootFilesystem")),
        options=_options(merged, ignored),
        sysctls=tuple((str(one["name"]), str(one["value"])) for one in merged.get("sysctls") or ()),
    )
    if not allowed.privileges and (asked := _privileges(found)):
        raise UserError(
            f"{pod['metadata']['name']}: its securityContext asks for {', '.join(asked)}; "
            "containers get more than Docker's usual privileges only with --allow-privileges"
        )
    return found


def _privileges(found: Security) -> list[str]:
    """Privileges beyond those that Docker gives every container."""
    added = [name for name in found.add if name.removeprefix("CAP_") not in USUAL]
    capabilities = [f"the capabilities {' and '.join(added)}"] if added else []
    return [*capabilities, *(["no seccomp filter (Unconfined)"] if "seccomp=unconfined" in found.options else [])]


def _options(merged: Mapping[str, Any], ignored: list[str]) -> tuple[str, ...]:
    options = []
    if merged.get("allowPrivilegeEscalation") is False:
        options.append("no-new-privileges")
    profile = (merged.get("seccompProfile") or {}).get("type", "RuntimeDefault")
    if profile == "Unconfined":
        options.append("seccomp=unconfined")
    elif profile != "RuntimeDefault":
        ignored.append(f"securityContext.seccompProfile.type {profile}")
    return tuple(options)
