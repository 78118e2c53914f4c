"""The lines of our Dockerfile that make an MPI image from any Debian or Ubuntu image."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import mpiboot
from mpiboot.images.build.base_probe import SUPPORTED
from mpiboot.images.dockerfile import DOCKERFILE, stages
from mpiboot.images.matrix import HOROVOD, KIT, REPOSITORY
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.images.matrix import Image

_ARG = re.compile(r"ARG (?P<name>\w+)(?P<default>=.*)?")


def lines(row: Image) -> str:
    """The lines to paste into a user's Dockerfile, anywhere after its FROM."""
    if not row.runs_mpi:
        raise UserError(f"{row.name} has no MPI runtime to add to another image; see RUNTIME in: mpiboot images list")
    if row.kind.startswith(HOROVOD):
        raise UserError(
            f"{row.name}: separate stages of mpiboot's Dockerfile compile Horovod, and a fragment cannot contain them;"
            f" begin your Dockerfile with: FROM {row.repository}"
        )
    known = stages(DOCKERFILE.read_text())
    given = {"RUNTIME": row.runtime, "ACCEL": row.accel, "KIND": row.kind, **row.arguments}
    steps = [line for stage in ("ssh", row.runtime, row.accel, row.kind, "image") for line in known.get(stage, [])]
    return "\n".join([*_head(row), *[_own(line, given) for line in steps]])


def _head(row: Image) -> list[str]:
    return [
        f"# SSH and {row.runtime} for MPI jobs, from mpiboot {mpiboot.__version__}, on a base of {SUPPORTED}.",
        f"# Build with BuildKit; the steps come from the image {REPOSITORY}/{KIT}: mpiboot images build {KIT}",
    ]


def _own(line: str, given: dict[str, str]) -> str:
    """`line` with the row's arguments, for a Dockerfile that does not have our stages."""
    kit = f"from={REPOSITORY}/{KIT}:{mpiboot.__version__}"
    line = line.replace("from=package,", f"{kit},source=/package,").replace("from=kit,", f"{kit},")
    argument = _ARG.fullmatch(line)
    if argument and argument["name"] in given:
        return f'ARG {argument["name"]}="{given[argument["name"]]}"'
    return line
