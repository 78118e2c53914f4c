"""How generated manifests look as YAML: no anchors, and text of several lines as a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


def dumper(yaml: ModuleType) -> Any:  # noqa: ANN401 (a class of the module that is imported late)
    """A dumper class of PyYAML."""

    class Dumper(yaml.SafeDumper):  # type: ignore[misc,name-defined]
        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 (PyYAML's signature)
            return True

    def text(dumper: Any, value: str) -> Any:  # noqa: ANN401 (PyYAML's types)
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper
