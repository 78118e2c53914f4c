"""Where the pods of the openmpi prototype fetch data from before the run, and store it after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from mpiboot.job.prototypes.parameter_values import ParameterValues

KEYS_DIR = "/kubeflow/openmpi/s3"
SCHEME = "s3://"


@dataclass(frozen=True)
class Data:
    """`download` and `upload` are FROM and TO; `base` is what the name of a pod is appended to."""

    secret: str | None
    download: tuple[str, str] | None
    upload: tuple[str, str] | None

    @property
    def any(self) -> bool:
        return bool(self.download or self.upload)

    def environment(self, pod: str) -> dict[str, str]:
        """What a pod's mpiboot reads."""
        found: dict[str, str] = {}
        if self.download:
            found |= {"MPIBOOT_DOWNLOAD_FROM": self.download[0], "MPIBOOT_DOWNLOAD_TO": self.download[1]}
        if self.upload:
            found |= {"MPIBOOT_UPLOAD_FROM": self.upload[0], "MPIBOOT_UPLOAD_TO": f"{self.upload[1]}/{pod}"}
        if found and self.secret:
            found["MPIBOOT_DATA_KEYS"] = KEYS_DIR
        return found


def data_of(given: ParameterValues, namespace: str) -> Data:
    """The parameters, checked now: otherwise a wrong address would fail only after the run."""
    download = given.both("downloadDataFrom", "downloadDataTo")
    upload = given.both("uploadDataFrom", "uploadDataTo")
    for pair, uri, directory, names in (
        (download, 0, 1, ("downloadDataFrom", "downloadDataTo")),
        (upload, 1, 0, ("uploadDataFrom", "uploadDataTo")),
    ):
        if pair and not (pair[uri].startswith(SCHEME) and pair[uri].removeprefix(SCHEME).partition("/")[0]):
            raise UserError(f"--{names[uri]} must be s3://BUCKET/PREFIX, is {pair[uri]!r}")
        if pair and not pair[directory].startswith("/"):
            raise UserError(f"--{names[directory]} must be a path from the root, is {pair[directory]!r}")
    if upload:
        upload = (upload[0], f"{upload[1].rstrip('/')}/{namespace}/{given.name}")
    return Data(given.text("s3Secret"), download, upload)
