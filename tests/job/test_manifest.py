"""Text to data: a mistake in YAML is one line, and the data is what kubectl would have sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mpiboot.job.problems import ManifestError
from mpiboot.job.read.manifest import Manifest, load
from mpiboot.job.read.read import read

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\n"

WRONG = {
    "not YAML": ("a: [1, 2\nb: 3\n", "f:2: not YAML: while parsing a flow sequence, expected ',' or ']', but got ':'"),
    "unclosed quote": ('a: "b\n', "f:2: not YAML: while scanning a quoted scalar, found unexpected end of stream"),
    "bad indentation": (
        "a:\n    b: 1\n  c: 2\n",
        "f:3: not YAML: while parsing a block mapping, expected <block end>, but found '<block mapping start>'",
    ),
    "a tab": ("a:\n\tb: 1\n", "f:2: a tab cannot indent or separate in YAML: use spaces"),
    "binary": ("a: \x01\n", "f: not YAML: unacceptable character #x0001: special characters are not allowed"),
    "empty": ("", "f: is empty; it must hold an MPIJob"),
    "comments only": ("# nothing\n---\n# here\n", "f: is empty; it must hold an MPIJob"),
    "a list": ("- a\n- b\n", "f:1: must be an MPIJob, a mapping of keys to values; is a list"),
    "prose": ("hello\n", "f:1: must be an MPIJob, a mapping of keys to values; is text"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", "f:3: the key 'a' is given twice, first in line 1"),
    "a key twice, deep": ("a:\n  - b: 1\n    b: 1\n", "f:3: the key 'b' is given twice, first in line 2"),
    "two jobs": (
        f"{HEAD}metadata: {{name: a}}\n---\n{HEAD}metadata: {{name: b}}\n",
        "f:5: holds 2 MPIJobs: MPIJob a (line 1), MPIJob b (line 5); put each in a file of its own",
    ),
    "no job among several": (
        "kind: Secret\nmetadata: {name: s}\n---\nx: 1\n",
        "f: holds no MPIJob, only Secret s, an object without kind",
    ),
    "a tag": ("a: !include b\n", "f:1: the tag !include has no meaning in a manifest"),
    "an alias in itself": ("a: &a\n  b: *a\n", "f:1: an alias cannot stand inside its own anchor"),
    "an alias merged in itself": ("a: &a\n  <<: *a\n", "f:1: an alias cannot stand inside its own anchor"),
    "an unknown alias": ("a: *b\n", "f:1: not YAML: found undefined alias 'b'"),
    "a merge of text": ("a:\n  <<: b\n", "f:2: '<<' merges mappings only"),
    "a key that is a list": ("? [a]\n: b\n", "f:1: a key must be text"),
    "too deep": ("[" * 5000, "f: nested too deeply for a manifest"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as error:
        load(text, "f")
    assert str(error.value) == message


def test_a_file_that_expands_without_end_is_refused() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10))
    with pytest.raises(ManifestError, match="too large: more than 200000 values, aliases expanded"):
        load(f"l0: &l0 lol\n{levels}\n", "f")


VALUES = {
    "text": ("x", "x"),
    "quoted number": ('"2"', "2"),
    "number": ("12", 12),
    "octal file mode": ("0444", 0o444),
    "hexadecimal": ("0x1F", 31),
    "not quite octal": ("0899", "0899"),
    "a date stays text": ("2026-11-18", "2026-11-18"),
    "a port map stays text": ("8080:22", "8080:22"),
    "a fraction": ("1.5", 1.5),
    "an exponent": ("1e3", 1000.0),
    "a version is text": ("1.2.3", "1.2.3"),
    "truth": ("yes", True),
    "nothing": ("~", None),
    "the policy None is text": ("None", "None"),
    "infinity stays text, JSON has none": (".inf", ".inf"),
    "a block of text": ("|\n  1\n  2\n", "1\n2\n"),
    "tagged text": ("!!str 2", "2"),
    "digits without end": ("9" * 5000, "9" * 5000),
}


def test_merges_of_empty_mappings_are_counted_too() -> None:
    """Each level merges the one before eight times; no value is in any of them."""
    levels = [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 8)}]}}\n" for level in range(1, 9)]
    with pytest.raises(ManifestError, match="too large: more than 200000 values, aliases expanded"):
        load("a0: &a0 {}\n" + "".join(levels), "f")


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 5000])
def test_a_number_that_no_program_can_show_stays_text(digits: str) -> None:
    assert load(f"kind: MPIJob\nspec: {digits}\n", "f").data["spec"] == digits


@pytest.mark.parametrize(("text", "value"), VALUES.values(), ids=VALUES)
def test_values_are_those_that_kubectl_sends(text: str, value: object) -> None:
    data = load(f"v: {text}\n", "f").data
    assert data == {"v": value}
    assert type(data["v"]) is type(value)
    assert json.loads(json.dumps(data)) == data


def test_merged_mappings_give_way_to_own_keys() -> None:
    data = load("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\n", "f").data
    assert data["c"] == {"x": 3, "y": 1, "z": 2}


def test_keys_are_text_whatever_they_look_like() -> None:
    assert load("1: a\ntrue: b\n", "f").data == {"1": "a", "true": "b"}


def test_json_may_be_indented_by_tabs() -> None:
    assert load('{\n\t"a": "b c"\n}\n', "f").data == {"a": "b c"}


def test_every_path_has_its_line() -> None:
    manifest = load("a:\n  b:\n    - c: 1\n\n    - d: 2\ne: |\n  x\n", "f")
    lines = {("a",): 1, ("a", "b"): 2, ("a", "b", 0, "c"): 3, ("a", "b", 1): 5, ("a", "b", 1, "d"): 5, ("e",): 6}
    assert {path: manifest.line(path) for path in lines} == lines
    assert manifest.line(("a", "nowhere", "deep")) == 1


def test_other_objects_are_left_out_with_a_warning(manifest: Callable[[str], Manifest]) -> None:
    found = manifest("odd.yaml")
    assert found.data["kind"] == "MPIJob"
    texts = [warning.text(found.source) for warning in found.warnings]
    assert texts == ["odd.yaml:2: ConfigMap inputs is ignored: only the MPIJob is used"]
    assert read(found).warnings[0] == found.warnings[0]


