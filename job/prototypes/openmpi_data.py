"""Where the pods of the openmpi prototype fetch data from before the run, and store it after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpiboot.job.prototypes.parameter_values import ParameterValues

KEYS_DIR = "/kubeflow/openmpi/s3"
SCHEME = "s3://"
DONE = "/kubeflow/openmpi/data/.mpiboot-ended"  # both containers of a pod see it
AFTERWARDS = f'trap "exit 143" TERM; until [ -e {DONE} ]; do sleep 1; done; rm -f {DONE}; exec "$@"'


@dataclass(frozen=True)
class Data:
    """`download` and `upload` are FROM and TO; `base` is what the name of a pod is appended to."""

    secret: str | None
    image: str | None  # of containers that move the data for images without mpiboot
    download: tuple[str, str] | None
    upload: tuple[str, str] | None

    @property
    def any(self) -> bool:
        return bool(self.download or self.upload)

    def environment(self, pod: str) -> dict[str, str]:
        """What a pod's mpiboot reads."""
        found: dict[str, str] = {}
        if self.image:
            return {"MPIBOOT_DATA_DONE": DONE} if self.upload else {}
        if self.download:
            found |= {"MPIBOOT_DOWNLOAD_FROM": self.download[0], "MPIBOOT_DOWNLOAD_TO": self.download[1]}
        if self.upload:
            found |= {"MPIBOOT_UPLOAD_FROM": self.upload[0], "MPIBOOT_UPLOAD_TO": f"{self.upload[1]}/{pod}"}
        if found and self.secret:
            found["MPIBOOT_DATA_KEYS"] = KEYS_DIR
        return found

    def containers(self, pod: str, fields: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The containers that move a pod's data, before the pod's own container runs and beside it. `fields` are what
        all containers of the pod share.
        """
        if not self.image:
            return {}
        program = ["python3", "-m", "mpiboot.bootstrap.data.s3"]
        keys = KEYS_DIR if self.secret else ""
        found: dict[str, list[dict[str, Any]]] = {}
        if self.download:
            words = [*program, "fetch", *self.download, keys]
            found["initContainers"] = [{**fields, "name": "download", "image": self.image, "command": words}]
        if self.upload:
            source, target = self.upload
            words = ["/bin/sh", "-c", AFTERWARDS, "upload", *program, "store", source, f"{target}/{pod}", keys]
            found["containers"] = [{**fields, "name": "upload", "image": self.image, "command": words}]
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
    image = given.text("dataImage") if download or upload else None
    return Data(given.text("s3Secret"), image, download, upload)
