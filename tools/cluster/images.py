"""Copy images to the node from the Docker engine that built them, without a registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from debian import log

from . import kind
from .containerd import PAUSE, ctr_command
from .errors import ClusterError
from .home import NODE
from .lock import only_one

if TYPE_CHECKING:
    from .home import Home

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def load(image: str, home: Home = NODE) -> None:
    """Copy an image of the Docker engine to the node, unless the node has this version of it."""
    if not home.kubeconfig.exists():
        raise ClusterError("the node does not run; start it with: make cluster")
    identity = _identity(image)
    if kind.runs(home):
        kind.load(image)
        return
    record = home.path / "images" / image.replace("/", "+")
    with only_one(home.path / "images.lock", f"copying {image} to the node"):
        if record.exists() and record.read_text() == identity:
            return
        log(f"copying {image} to the node")
        save = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        done = subprocess.run(ctr_command(home, "images", "import", "-"), stdin=save.stdout, text=True,
                              capture_output=True)
        assert save.stdout is not None
        assert save.stderr is not None
        save.stdout.close()
        error = save.stderr.read().decode(errors="replace")
        save.stderr.close()
        if save.wait() or done.returncode:
            raise ClusterError(f"copying {image} to the node failed: {(error or done.stderr).strip()[-500:]}")
        record.parent.mkdir(exist_ok=True)
        record.write_text(identity)


def load_pause(home: Home) -> None:
    """Make and load the image that keeps a pod's namespaces: one static program that sleeps."""
    program = shutil.which("catatonit", path="/usr/bin:/usr/libexec/catatonit")
    assert program is not None
    done = subprocess.run(ctr_command(home, "images", "import", "-"), input=_pause(Path(program)), capture_output=True)
    if done.returncode:
        raise ClusterError(f"the node refused the image {PAUSE}: {done.stderr.decode().strip()}")


def _pause(program: Path) -> bytes:
    layer = _tar({"catatonit": program.read_bytes()})
    configuration = json.dumps({
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
        "config": {"Entrypoint": ["/catatonit", "-P"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}}).encode()
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    return _tar({"layer.tar": layer, "config.json": configuration, "manifest.json": json.dumps(manifest).encode()})


def _tar(files: dict[str, bytes]) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return output.getvalue()


def _identity(image: str) -> str:
    if shutil.which("docker") is None:
        raise ClusterError(f"cannot copy {image} to the node: docker is not installed; install it with: make engine")
    done = subprocess.run(["docker", "image", "inspect", "--format", "{{.Id}}", image], text=True, capture_output=True)
    if done.returncode:
        raise ClusterError(f"the Docker engine has no image {image}: {done.stderr.strip()}")
    return done.stdout.strip()
