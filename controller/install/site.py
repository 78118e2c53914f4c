"""An installation for one registry: manifests, values of the chart and a first job, which name the images there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiboot import __version__
from mpiboot.controller.install.crd import crd
from mpiboot.controller.install.install import IMAGE, install
from mpiboot.controller.install.manifests import text
from mpiboot.controller.settings import PREFIX
from mpiboot.job.job_annotations import PREFIX as ANNOTATION
from mpiboot.job.settings import OUR_IMAGES, Settings
from mpiboot.job.starter import STARTER_COMMAND, manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

FROM = f"{ANNOTATION}images-from"


@dataclass(frozen=True)
class Site:
    """Names of images where the nodes find them, with tags or digests.

    `source` says where they come from. `own` are further images that carry mpiboot under names that do not show it.
    """

    operator: str
    source: str
    job_image: str = ""
    delivery: str = ""
    own: tuple[str, ...] = ()
    loaded: bool = False  # the images are in the nodes, and Kubernetes must not look for them elsewhere

    @property
    def settings(self) -> dict[str, str]:
        """The operator's settings, by the names of its flags."""
        unknown = [name for name in self.own if not Settings().is_own(name)]
        pattern = "|".join([OUR_IMAGES, *(rf"^{re.escape(repository(name))}(:[\w.-]+)?(@.*)?$" for name in unknown)])
        found = {"own-images": pattern if unknown else "", "delivery-image": self.delivery}
        return {flag: value for flag, value in found.items() if value}


def repository(image: str) -> str:
    """An image's name without tag and digest."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def objects(site: Site) -> list[dict[str, Any]]:
    """The CRD and everything else, with the operator's image and settings."""
    found = [crd(), *install()]
    for each in found:
        if each["kind"] == "Deployment":
            each["metadata"]["annotations"] = {FROM: site.source}
            container = each["spec"]["template"]["spec"]["containers"][0]
            container |= {"image": site.operator, "imagePullPolicy": "Never" if site.loaded else "IfNotPresent"}
            container["env"] += [{"name": variable(flag), "value": value} for flag, value in site.settings.items()]
    return found


def variable(flag: str) -> str:
    return PREFIX + flag.upper().replace("-", "_")


def values(site: Site) -> dict[str, Any]:
    """The same as values of the Helm chart."""
    name, _, digest = site.operator.partition("@")
    where = repository(site.operator)
    image = {"repository": where, "tag": name.removeprefix(f"{where}:"), "digest": digest}
    return {"image": {**image, **({"pullPolicy": "Never"} if site.loaded else {})}, "settings": site.settings}


def files(site: Site) -> Mapping[str, str]:
    """What `mpiboot install` writes, by name."""
    import yaml

    head = f"# The operator of mpiboot {__version__}. Its images: {site.source}.\n"
    found = {
        "mpiboot.yaml": text(objects(site), head),
        "values.yaml": head + yaml.safe_dump(values(site), sort_keys=False, width=1000),
    }
    if site.job_image:
        found["job.yaml"] = manifest("pi", site.job_image, STARTER_COMMAND, loaded=site.loaded)
    return found


def loaded(job_image: str, delivery: str, source: str) -> Site:
    """An installation for nodes into which the images are loaded by their own names."""
    return Site(IMAGE, source, job_image, delivery, loaded=True)
