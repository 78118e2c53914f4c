"""A compilation of `mpiboot cc`: which compiler wrapper, in which image. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mpiboot.job import mpi, quick
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

OURS = "mpiboot/"
DEV = "-dev"
# The images that run programs have no library of Fortran's.
OF_FORTRAN = "-static-libgfortran"
C, CXX, FORTRAN = "C", "C++", "Fortran"
ENDINGS = {
    C: (".c",),
    CXX: (".cc", ".cpp", ".cxx", ".c++", ".C"),
    FORTRAN: (".f", ".for", ".f90", ".f95", ".f03", ".f08", ".F", ".F90", ".F95", ".F03", ".F08"),
    "": (".o", ".a", ".so"),
}


def command(words: Sequence[str], runtime: mpi.Runtime) -> list[str]:
    """The words of a compiler, with the wrapper for their sources; a program that they begin with (make) is itself."""
    if not words:
        raise UserError("say what to compile: mpiboot cc -O2 pi.c -o pi")
    if not words[0].startswith("-") and _language(words[0]) is None:
        return list(words)
    languages = {found for word in words if not word.startswith("-") and (found := _language(word))}
    if languages >= {CXX, FORTRAN}:
        raise UserError("compile C++ and Fortran in two steps (-c), then link: mpiboot cc mpicxx a.o b.o -lgfortran")
    if FORTRAN in languages:
        if not runtime.fortran:
            raise UserError(f"{runtime.title} has no Fortran here; Open MPI has: --image {OURS}{mpi.DEFAULT.image}")
        return [runtime.fortran, OF_FORTRAN, *words]
    return ["mpicxx" if CXX in languages else "mpicc", *words]


def _language(word: str) -> str | None:
    """The language of a source; empty for what is compiled already; None if it is neither."""
    ending = PurePosixPath(word).suffix
    return next((language for language, endings in ENDINGS.items() if ending in endings), None)


def image_with_compilers(image: str) -> str:
    """The image that has the compilers and headers for programs that run in an image."""
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:  # the colon of a registry's port
        name, tag = image, ""
    if "@" in name:
        raise UserError(f"{image}: name it by its tag, to which {DEV} belongs")
    if name.endswith(DEV):
        return image
    runtime = quick.runtime_of(image).image
    if name.startswith(OURS) and name != f"{OURS}{runtime}":
        # openmpi-cuda and the like have the MPI of openmpi.
        return f"{OURS}{runtime}{DEV}"
    return f"{name}{DEV}:{tag}" if tag else f"{name}{DEV}"


def how_to_get(image: str) -> str:
    """Where an image with compilers comes from."""
    if image.startswith(OURS):
        name = image.removeprefix(OURS).partition(":")[0]
        return f"the image {image} with the compilers is not on this engine; build it with: mpiboot images build {name}"
    return f"the image {image} with the compilers is not on this engine; name one that is: --image NAME{DEV}"
