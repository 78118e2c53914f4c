"""`mpiboot install` and `mpiboot bundle`: an installation that names its images in a registry, or as one file."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mpiboot import __version__
from mpiboot.controller.install import site
from mpiboot.job.check.lint import lint
from mpiboot.job.settings import OUR_IMAGES, Settings
from mpiboot.job.starter import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Mpiboot = Callable[..., subprocess.CompletedProcess[str]]
    Tag = Callable[[str], str]

_spec = importlib.util.spec_from_file_location("registry", Path(__file__).with_name("registry.py"))
assert _spec is not None
assert _spec.loader is not None
_registry = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_registry)


@pytest.fixture
def registry() -> Iterator[Any]:
    with _registry.registry() as found:
        yield found


def container(text: str) -> dict[str, Any]:
    """The operator's container in manifests."""
    deployment = next(each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment")
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def pinned(registry: Any, name: str, tag: str) -> str:  # noqa: ANN401 (of a module that is loaded by its path)
    """The image as its registry has it."""
    digest = hashlib.sha256(registry.documents[f"{name}/{tag}"]).hexdigest()
    return f"{registry.address}/{name}:{tag}@sha256:{digest}"


@pytest.fixture
def pushed(image: Tag, mpiboot: Mpiboot, registry: Any, tmp_path: Path) -> Path:  # noqa: ANN401
    """What `mpiboot install --push` writes. The images for jobs are only the small kit."""
    image("operator")
    image("kit")
    folder = tmp_path / "first"
    done = mpiboot("install", "--registry", f"{registry.address}/team", "--push", "-o", str(folder), "kit")
    assert done.returncode == 0, done.stderr
    return folder


def test_one_command_pushes_and_names_what_it_pushed_by_digest(pushed: Path, registry: Any) -> None:  # noqa: ANN401
    operator, kit = (pinned(registry, f"team/mpiboot-{name}", __version__) for name in ("operator", "kit"))
    main = container((pushed / "mpiboot.yaml").read_text())
    assert (main["image"], main["imagePullPolicy"]) == (operator, "IfNotPresent")
    assert (pushed / "images.txt").read_text().split() == [operator, kit]
    values = yaml.safe_load((pushed / "values.yaml").read_text())
    assert f"{values['image']['repository']}:{values['image']['tag']}@{values['image']['digest']}" == operator
    assert lint((pushed / "values.yaml").read_text(), "values.yaml") == ()
    assert kit in (pushed / "job.yaml").read_text()


def test_the_manifests_say_where_their_images_come_from(pushed: Path, registry: Any) -> None:  # noqa: ANN401
    text = (pushed / "mpiboot.yaml").read_text()
    assert f"registry {registry.address}/team" in text.splitlines()[0]
    deployment = next(each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment")
    assert f"registry {registry.address}/team" in deployment["metadata"]["annotations"]["mpiboot.dev/images-from"]


def test_without_push_it_names_what_the_registry_has(
    pushed: Path, mpiboot: Mpiboot, registry: Any, tmp_path: Path  # noqa: ANN401
) -> None:
    again = tmp_path / "again"
    done = mpiboot("install", "--registry", f"{registry.address}/team", "-o", str(again), "kit")
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_text() for path in again.iterdir()} == {
        path.name: path.read_text() for path in pushed.iterdir()}  # fmt: skip


def test_images_that_no_registry_has_end_the_command_and_nothing_is_written(
    image: Tag, mpiboot: Mpiboot, registry: Any, tmp_path: Path  # noqa: ANN401
) -> None:
    image("operator")
    folder = tmp_path / "none"
    done = mpiboot("install", "--registry", registry.address, "-o", str(folder))
    assert done.returncode == 2
    assert f"the registry does not show {registry.address}/mpiboot/operator:{__version__}" in done.stderr
    assert done.stderr.strip().endswith("push it with --push, or leave digests out with --tags")
    assert len(done.stderr.splitlines()) == 1
    assert not folder.exists()


def test_without_an_engine_images_are_named_by_tag(mpiboot: Mpiboot, tmp_path: Path) -> None:
    nothing = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock", "PATH": "/usr/bin:/bin"}
    asked = ("install", "--registry", "registry.example/team", "-o", "-")
    done = mpiboot(*asked, "--tags", env=nothing)
    assert done.returncode == 0, done.stderr
    assert container(done.stdout)["image"] == f"registry.example/team/mpiboot-operator:{__version__}"
    refused = mpiboot(*asked, env=nothing)
    assert refused.returncode == 2
    assert "let --tags name images without digests" in refused.stderr


@pytest.mark.parametrize("name", ["ghcr.io/me/openmpi", "ghcr.io/me/openmpi:5", "host:5000/a.b/c@sha256:0"])
def test_images_under_names_of_ones_own_are_made_known_to_the_operator(name: str) -> None:
    found = site.Site("r/mpiboot-operator:1", "r", own=(name,))
    assert not Settings().is_own(name)
    known = Settings(own_image_pattern=found.settings["own-images"])
    bare = site.repository(name)
    assert all(known.is_own(each) for each in (name, f"{bare}:2", f"{bare}@sha256:1", "mpiboot/openmpi"))
    assert not any(known.is_own(each) for each in (f"{bare}-other", f"x/{bare}", bare.replace(".", "x"), "debian"))
    deployment = next(each for each in site.objects(found) if each["kind"] == "Deployment")
    env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "MPIBOOT_OPERATOR_OWN_IMAGES", "value": found.settings["own-images"]} in env
    assert site.values(found)["settings"] == found.settings


def test_names_that_show_it_need_no_setting() -> None:
    assert site.Site("o", "r", own=("ghcr.io/me/mpiboot-openmpi:5",)).settings == {}
    assert site.Site("o", "r", delivery="r/d:1").settings == {"delivery-image": "r/d:1"}
    assert OUR_IMAGES not in site.files(site.Site("o", "r"))["mpiboot.yaml"]


@pytest.mark.parametrize("image_name", ["mpiboot/openmpi:1", "ghcr.io/me/mpiboot-mpich:1", "debian"])
def test_the_first_job_has_no_findings(image_name: str) -> None:
    assert lint(manifest("pi", image_name, ["hostname"]), "job.yaml") == ()


def test_a_first_job_says_what_its_images_name_does_not_show() -> None:
    job = yaml.safe_load(manifest("pi", "ghcr.io/me/openmpi", ["hostname"], own=True))
    assert job["metadata"]["annotations"] == {"mpiboot.dev/launch": "in-place"}
    assert "annotations" not in yaml.safe_load(manifest("pi", "mpiboot/openmpi", ["hostname"], own=True))["metadata"]


def test_the_manifests_of_this_repository_are_never_looked_for_in_a_registry() -> None:
    deploy = Path(__file__).parents[2] / "deploy"
    for name in ("mpiboot.yaml", "operator.yaml"):
        assert container((deploy / name).read_text())["imagePullPolicy"] == "Never"


def test_a_bundle_is_one_file_that_engines_load(image: Tag, mpiboot: Mpiboot, tmp_path: Path) -> None:
    image("operator")
    image("kit")
    file = tmp_path / "mpiboot.tar"
    done = mpiboot("bundle", str(file), "kit")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mpiboot.tar"]
    with tarfile.open(file) as tar:
        listed = json.loads(tar.extractfile("manifest.json").read())  # type: ignore[union-attr]
        texts = {name: tar.extractfile(f"install/{name}").read().decode()  # type: ignore[union-attr]
                 for name in ("mpiboot.yaml", "job.yaml", "values.yaml", "README.txt")}  # fmt: skip
    tags = {tag for each in listed for tag in each["RepoTags"]}
    main = container(texts["mpiboot.yaml"])
    assert main["imagePullPolicy"] == "Never"
    assert {main["image"], f"mpiboot/kit:{__version__}"} <= tags
    assert f"image: mpiboot/kit:{__version__}" in texts["job.yaml"]
    assert "images import mpiboot.tar" in texts["README.txt"]
    loaded = subprocess.run(["docker", "load", "--input", str(file)], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    assert f"mpiboot/kit:{__version__}" in loaded.stdout


def test_a_bundle_that_cannot_be_made_leaves_nothing(image: Tag, mpiboot: Mpiboot, tmp_path: Path) -> None:
    image("operator")
    image("kit")
    done = mpiboot("bundle", str(tmp_path / "no" / "folder.tar"), "kit")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert mpiboot("bundle", str(tmp_path / "x.tar"), "no-such-image").returncode == 2
    assert list(tmp_path.iterdir()) == []
