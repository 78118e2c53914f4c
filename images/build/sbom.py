"""The packages of an image as SPDX 2.3. The image's own programs list them, so any image will do."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import mpiboot
from mpiboot.images.build.one_command import output_of
from mpiboot.images.engine_errors import reason
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import docker

# One container prints everything. The headers of a METADATA file end at its first empty line.
PACKAGES_SCRIPT = r"""
. /etc/os-release; echo "os:$ID:${VERSION_CODENAME-}"
dpkg-query -W -f 'deb:${Package}\t${Version}\t${Architecture}\t${Maintainer}\t${db:Status-Status}\n' 2>/dev/null
find / -xdev \( -path '*.dist-info/METADATA' -o -path '*.egg-info/PKG-INFO' -o -name '*.egg-info' -type f \) \
    -exec sh -c 'for file; do echo "py:$file"; sed "/^[[:space:]]*$/q" "$file"; done' sh {} + 2>/dev/null
true
"""


@dataclass(frozen=True)
class Package:
    """An installed package."""

    kind: str  # deb or pypi
    name: str
    version: str
    where: str  # the architecture of a Debian package, the metadata file of a Python package
    supplier: str
    licence: str | None = None


def document(engine: docker.DockerClient, image: str) -> str:
    """The SPDX document of `image`, in JSON. The same image always gives the same text."""
    from docker.errors import APIError, ContainerError, ImageNotFound

    try:
        attributes = engine.images.get(image).attrs
        output = output_of(engine, image, ["/bin/sh", "-c", PACKAGES_SCRIPT], user="0")
    except ImageNotFound as error:
        raise UserError(f"{image}: the engine has no such image; mpiboot images list shows mpiboot's own") from error
    except ContainerError as error:
        raise UserError(f"{image}: the image's shell does not run the commands that list the packages") from error
    except APIError as error:
        raise UserError(f"{image}: the engine cannot start a container of it: {reason(error)}") from error
    system, packages = read(output)
    return json.dumps(spdx(image, attributes["Id"], attributes["Created"], system, packages), indent=2)


def read(text: str) -> tuple[str, tuple[Package, ...]]:
    """The system ("debian/trixie") and the packages in the output of PACKAGES_SCRIPT."""
    system = "linux"
    packages: set[Package] = set()
    path, header = "", dict[str, str]()

    def finish() -> None:
        if header.get("Name") and header.get("Version"):
            licence = header.get("License-Expression")
            author = header.get("Author-Email") or header.get("Author") or ""
            packages.add(Package("pypi", header["Name"], header["Version"], path, author, licence))

    for line in text.splitlines():
        if line.startswith("os:"):
            _, name, codename = line.split(":", 2)
            system = f"{name}/{codename}" if codename else name
        elif line.startswith("deb:"):
            name, version, architecture, maintainer, status = line[4:].split("\t")
            if status == "installed":
                packages.add(Package("deb", name, version, architecture, maintainer))
        elif line.startswith("py:"):
            finish()
            path, header = line[3:], {}
        else:
            key, colon, value = line.partition(": ")
            if colon and path:
                header.setdefault(key.title(), value.strip())
    finish()
    return system, tuple(sorted(packages, key=lambda one: (one.kind, one.name, one.where)))


def spdx(image: str, identity: str, created: str, system: str, packages: Sequence[Package]) -> dict[str, Any]:
    """The document as data."""
    root = {
        "SPDXID": "SPDXRef-image",
        "name": image,
        "versionInfo": identity,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
    }
    items = [_item(package, system) for package in packages]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": image,
        "documentNamespace": f"https://mpiboot.dev/spdx/{quote(image, safe='')}-{identity.removeprefix('sha256:')}",
        "creationInfo": {"created": f"{created[:19]}Z", "creators": [f"Tool: mpiboot-{mpiboot.__version__}"]},
        "packages": [root, *items],
        "relationships": list(_relationships(items)),
    }


def _relationships(items: Iterable[dict[str, Any]]) -> Iterable[dict[str, str]]:
    yield _relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")
    for item in items:
        yield _relation("SPDXRef-image", "CONTAINS", item["SPDXID"])


def _relation(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def _item(package: Package, system: str) -> dict[str, Any]:
    # Two copies of a Python package differ only by their place, and an identifier must be unique.
    place = hashlib.sha256(package.where.encode()).hexdigest()[:8]
    identity = re.sub(r"[^A-Za-z0-9.-]", "-", f"{package.kind}-{package.name}-{package.version}-{place}")
    return {
        "SPDXID": f"SPDXRef-{identity}",
        "name": package.name,
        "versionInfo": package.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": package.licence or "NOASSERTION",
        "copyrightText": "NOASSERTION",
        **({"supplier": f"Organization: {package.supplier}"} if package.supplier else {}),
        **({"sourceInfo": f"installed at {package.where}"} if package.kind == "pypi" else {}),
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": _purl(package, system),
            }
        ],
    }


def _purl(package: Package, system: str) -> str:
    version = quote(package.version, safe="")
    if package.kind == "pypi":
        return f"pkg:pypi/{re.sub(r'[-_.]+', '-', package.name).lower()}@{version}"
    name, _, codename = system.partition("/")
    distro = f"&distro={codename}" if codename else ""
    return f"pkg:deb/{name}/{quote(package.name, safe='')}@{version}?arch={package.where}{distro}"
