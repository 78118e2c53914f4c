"""Images and manifests as one file, which every container engine loads: an image archive with a folder more."""

from __future__ import annotations

import io
import subprocess
import tarfile
from typing import TYPE_CHECKING

from mpiboot.containers.client import docker_cli
from mpiboot.images.build.base import last_line
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FOLDER = "install"

README = """\
{images}

1. Load the images, on each node of the cluster or into your registry's machine:

     ctr --namespace k8s.io images import {file}
     kind load image-archive {file}
     docker load --input {file}

2. Install the operator from the loaded images, and run a first job:

     tar -xf {file} install
     kubectl apply --server-side -f install/mpiboot.yaml
     kubectl apply -f install/job.yaml

With a registry in your network, after `docker load` on a machine that has mpiboot:

     mpiboot install --registry REGISTRY --push {names}
     kubectl apply --server-side -f mpiboot-install/mpiboot.yaml
"""


def readme(file: str, images: Sequence[str]) -> str:
    names = [image.partition(":")[0].rpartition("/")[2] for image in images]
    return README.format(images="\n".join(images), file=file, names=" ".join(names[1:]))


def save(file: Path, tags: Sequence[str], members: Mapping[str, str]) -> None:
    """Write the images and the members. Loaders skip what an archive holds beside its images."""
    part = file.with_name(f"{file.name}.part")
    try:
        done = subprocess.run([docker_cli(), "save", "--output", str(part), *tags], capture_output=True, text=True)
        if done.returncode != 0:
            raise UserError(f"the engine did not save the images to {file}: {last_line(done.stderr)}")
        with tarfile.open(part, "a") as tar:
            for name, text in members.items():
                entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                entry.size, entry.mode = len(text.encode()), 0o644
                tar.addfile(entry, io.BytesIO(text.encode()))
        part.replace(file)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
