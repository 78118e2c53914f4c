"""The table of images: ours is sound, and every way of getting one wrong is named, with its place."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from mpiboot.images.build import docker_command
from mpiboot.images.build.bake import document
from mpiboot.images.dockerfile import stages
from mpiboot.images.matrix import NONE, OWN, MatrixError, load, read

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"runtime": "openmpi", "accel": "cpu", "kind": "runtime"}


def table(**images: object) -> dict[str, Any]:
    return {"images": {name: {**ROW, **row} if isinstance(row, dict) else row for name, row in images.items()}}


def test_every_row_leads_through_stages_that_exist(dockerfile: str) -> None:
    known = stages(dockerfile)
    for row in load().rows.values():
        ways = {row.runtime, row.accel, row.kind} if row.runs_mpi else {row.kind}
        assert ways <= known.keys(), row.name


def test_every_choice_in_the_dockerfile_has_a_row(dockerfile: str) -> None:
    used = {word for row in load().rows.values() for word in (row.runtime, row.accel, row.kind)} - {NONE}
    common = {"workshop", "nodelay", "kit", "package", "ssh", "image", "delivered"}
    common |= {"torch", "torch-wheel", "torch-cuda", "torch-cuda-wheel"}  # where Horovod is made
    common |= {"tensorflow", "tensorflow-wheel", "tensorflow-trim", "deepspeed-wheel"}
    assert stages(dockerfile).keys() - common == used


def test_every_argument_of_a_row_is_read_by_a_stage(dockerfile: str) -> None:
    for row in load().rows.values():
        if row.runs_mpi:
            for name in row.arguments:
                assert f"ARG {name}" in dockerfile, f"{row.name}: no stage reads {name}"


def test_the_table_is_one_line_a_row() -> None:
    lines = OWN.read_text().splitlines()
    for name in load().rows:
        assert sum(line.split()[:1] == [name] for line in lines) == 1


def test_a_new_row_takes_no_code() -> None:
    mine = tomllib.loads(OWN.read_text())
    mine["images"]["mpich-cuda"] = {**ROW, "runtime": "mpich", "accel": "cuda", "arguments": {"MPICH": "4.3.2"}}
    row = read(mine, "mine").get("mpich-cuda")
    arguments = docker_command.stages(row, "debian", "debian")
    assert {"RUNTIME": "mpich", "ACCEL": "cuda", "MPICH": "4.3.2", "MPI4PY": "4.1.2"}.items() <= arguments.items()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (table(pi={"runtim": "x"}), "images.pi.runtim: unknown key; did you mean runtime?"),
        ({**table(pi={}), "image": {}}, "image: unknown key; did you mean images?"),
        ({"images": {"pi": {"runtime": "openmpi"}}}, "images.pi.accel: is missing"),
        ({"images": {"pi": 3}}, "images.pi: must be a table, is 3"),
        ({"images": {}}, "images: must be a table with a row for each image"),
        (table(pi={"kind": ""}), "images.pi.kind: must be a word, is ''"),
        (table(pi={"kind": 7}), "images.pi.kind: must be a word, is 7"),
        (table(pi={"arguments": {"A": 1}}), "images.pi.arguments.A: must be a text, is 1"),
        (table(pi={"arguments": "A=1"}), "images.pi.arguments: must be a table of texts"),
        (table(pi={"arch": ["ppc"]}), "images.pi.arch: must be a list of amd64 and arm64, is ['ppc']"),
        (table(pi={"arch": "amd64"}), "images.pi.arch: must be a list"),
        (table(pi={"arch": [["amd64"]]}), "images.pi.arch: must be a list"),
        (table(pi={"only_when_named": "yes"}), "images.pi.only_when_named: must be true or false"),
        ({**table(pi={}), "arguments": {"A": 1}}, "arguments.A: must be a text, is 1"),
        (table(pi={"runtime": "opnmpi"}), "images.pi.runtime: the Dockerfile has no stage 'opnmpi'; did you mean open"),
        (table(pi={"runtime": "none", "kind": "oprator"}), "kind: the Dockerfile has no stage 'oprator'; did you"),
        (table(pi={"description": 1}), "images.pi.description: must be a word, is 1"),
        (table(Pi={}), "images.Pi: is not a name for an image"),
        ({**table(pi={}), "arguments": "A"}, "arguments: must be a table of texts"),
        (table(a={"base": "a"}), "images.a.base: the bases form a cycle: a -> a"),
        (table(a={"base": "b"}, b={"base": "c"}, c={"base": "a"}), "a cycle: a -> b -> c -> a"),
        (table(x={"base": "a"}, a={"base": "b"}, b={"base": "a"}), "a cycle: a -> b -> a"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MatrixError) as error:
        read(given, "images.toml")
    assert said in str(error.value)
    assert str(error.value).startswith("images.toml: ")


def test_all_problems_are_in_one_error() -> None:
    with pytest.raises(MatrixError) as error:
        read(table(a={"kinds": "x"}, b={"base": "b"}), "images.toml")
    assert len(str(error.value).splitlines()) == 2


def test_a_row_comes_after_its_base_and_once() -> None:
    matrix = read(table(c={"base": "b"}, b={"base": "a"}, a={}, d={"base": "a"}), "t")
    names = [row.name for row in matrix.with_parents(matrix.select(["c", "d"]))]
    assert names == ["a", "b", "c", "d"]


def test_a_base_that_is_no_row_is_an_image_from_elsewhere() -> None:
    matrix = read(table(a={"base": "debian:testing"}), "t")
    assert matrix.parent(matrix.get("a")) is None


@pytest.mark.parametrize(
    "name", ["openmpi-rocm", "horovod-torch-cuda", "deepspeed", "deepspeed-mpich", "deepspeed-intel"]
)
def test_rows_of_many_downloads_are_built_only_when_named(name: str) -> None:
    matrix = load()
    assert name not in [row.name for row in matrix.select([])]
    assert [row.name for row in matrix.select([name])] == [name]


def test_accelerator_narrows_the_choice() -> None:
    matrix = load()
    assert {row.accel for row in matrix.select([], "cpu")} == {"cpu"}
    with pytest.raises(MatrixError, match="did you mean cuda"):
        matrix.select([], "cud")


@pytest.mark.parametrize(
    ("names", "accel", "said"),
    [
        ([], "rocm", "none of the images built by default is for rocm; name one of: openmpi-rocm"),
        (["openmpi", "mpich"], "cuda",
         r"none of the named images \(openmpi, mpich\) is for cuda; name one of: openmpi-cuda"),
    ],
)
def test_a_choice_of_nothing_says_what_there_is(names: list[str], accel: str, said: str) -> None:
    with pytest.raises(MatrixError, match=said):
        load().select(names, accel)


def test_a_table_of_images_that_must_be_named_says_so_and_still_bakes() -> None:
    matrix = read(table(a={"only_when_named": True}), "t")
    with pytest.raises(MatrixError, match="name one of: a"):
        matrix.select([])
    assert document(matrix, "context")["group"]["default"]["targets"] == []


@pytest.mark.parametrize("text", ["images = [", "\x00", "[images]\na = {}\na = {}"])
def test_a_file_that_is_not_toml_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(MatrixError) as error:
        load(path)
    assert str(error.value).startswith(f"{path} is not a TOML file")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="No such file"):
        load(tmp_path / "none.toml")
