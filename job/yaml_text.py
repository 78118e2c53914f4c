"""Data as YAML text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.job.read.yaml_lines import scalar

if TYPE_CHECKING:
    import yaml

    from mpiboot.job.values import Json


def dumped(*documents: Json) -> str:
    """The documents in block style and without anchors, text in quotes wherever a reader could take it for something
    else. Text of several lines is a block.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Json) -> bool:  # noqa: ARG002 - its base's signature
            return True

    def text(dumper: Dumper, value: str) -> yaml.Node:
        style = "|" if "\n" in value else "'" if scalar(value) != value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    Dumper.add_representer(str, text)
    result: str = yaml.dump_all(
        documents, Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120
    )
    return result
