"""The pages keep up with the code: paths, names, anchors, commands and manifests in them are there and work."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from statistics import median
from typing import TYPE_CHECKING

import click
import pytest

from mpiboot.__main__ import is_of_containers
from mpiboot.bootstrap import options
from mpiboot.cli.main import root
from mpiboot.controller.install import rights
from mpiboot.controller.metrics import Metrics
from mpiboot.job.check.advice import advice
from mpiboot.job.plan.plan import plan
from mpiboot.job.read import manifest, read
from mpiboot.kube.conditions import REASONS
from mpiboot.ssh import keys
from tests.conftest import REPOSITORY
from tests.repo.test_text import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCS = [page for page in PAGES if page.parent.name != "reference" and "kit" not in page.parts]
ARCHITECTURE = (REPOSITORY / "docs" / "architecture.md").read_text()
# In a page for readers of the code a path is one from the root, and a bare name a file of the folder of its section.
PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?|[\w-]+\.(?:py|toml))`")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text())
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_headings(page: Path) -> None:
    missing = []
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]*#[^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        to = page.parent / path if path else page
        if to.suffix == ".md" and anchor not in anchors(to):
            missing.append(target)
    assert missing == []


def test_a_stranger_finds_what_the_map_of_the_code_names() -> None:
    rows = re.findall(r"^\| .+ \| `([^`]+)` \| (?:`(\w+)`)? ?\|$", ARCHITECTURE, re.MULTILINE)
    assert len(rows) > 20
    wrong = []
    for path, name in rows:
        file = REPOSITORY / path
        defines = rf"^\s*(?:async )?(?:def|class) {name}\b|^{name}\b"
        if not file.is_file() or (name and not re.search(defines, file.read_text(), re.MULTILINE)):
            wrong.append(f"{path}: {name}")
    assert wrong == []


def test_files_that_the_map_of_the_code_names_are_there() -> None:
    missing = []
    for section in re.split(r"^##+ ", ARCHITECTURE, flags=re.MULTILINE)[1:]:
        folder = re.match(r"([\w/]+/):", section)
        for path in PATH.findall(section):
            near = folder is not None and any((REPOSITORY / folder[1]).rglob(path.rstrip("/")))
            if not near and not (REPOSITORY / path).exists():
                missing.append(path)
    assert missing == []


@pytest.mark.parametrize("page", [page for page in DOCS if page.name != "CHANGELOG.md"], ids=name_of)
def test_paths_in_pages_are_there(page: Path) -> None:
    folders = {path.name for path in REPOSITORY.iterdir() if path.is_dir() and not path.name.startswith(".")}
    named = {path for path in PATH.findall(page.read_text()) if "/" in path and path.split("/")[0] in folders}
    assert [path for path in sorted(named) if "NAME" not in path and not (REPOSITORY / path).exists()] == []


def test_every_contract_between_folders_is_written_down() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    _, *inner = settings["tool"]["importlinter"]["contracts"]
    assert [contract["name"] for contract in inner if f"- {contract['name']}\n" not in ARCHITECTURE] == []


def test_the_operators_rights_are_all_written_down() -> None:
    page = (REPOSITORY / "docs" / "security.md").read_text()
    listed: dict[str, str] = {}
    for what, verbs in re.findall(r"^\| (`.*?) \| ([a-z, ]+) \|$", page, re.MULTILINE):
        # `pods`, `leases` named `x`, `leases` of its own namespace
        names = re.findall(r"`([^`]+)`", what.partition(" named ")[0])
        given = re.search(r" named `([^`]+)`", what)
        own = "own" if " own namespace" in what else ""
        for name in names:
            listed[f"{name} {given[1] if given else ''} {own}"] = verbs.replace(", ", " ")
    real = {}
    for rules, own in ((rights.rules(), ""), (rights.namespaced_rules(), "own")):
        for rule in rules:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    real[f"{resource} {name} {own}"] = " ".join(rule["verbs"])
    assert listed == real


def test_every_event_and_metric_of_the_operator_is_written_down() -> None:
    page = (REPOSITORY / "docs" / "operator.md").read_text()
    code = "".join(path.read_text() for path in sorted((REPOSITORY / "controller").glob("*.py")))
    events = {*REASONS.values(), *re.findall(r'"(?:Normal|Warning)", "([A-Z]\w+)"', code)} - {"Warning"}
    assert len(events) > 12
    assert sorted(event for event in events if f"`{event}`" not in page) == []
    names = set(re.findall(r"^# TYPE (\w+)", Metrics().text(), re.MULTILINE))
    written = {name for text in re.findall(r"`(mpi\w*_operator_[\w{},]+)", page) for name in spelt_out(text)}
    assert names - written == set()


def spelt_out(text: str) -> list[str]:
    """`jobs_{created,failed}_total` as two names; `info{launcher}` as one, without its labels."""
    found = re.fullmatch(r"(\w+_)\{([\w,]+)\}(_\w+)", text)
    return [found[1] + word + found[3] for word in found[2].split(",")] if found else [text.partition("{")[0]]


def test_the_index_names_every_page() -> None:
    docs = REPOSITORY / "docs"
    linked = set(re.findall(r"\]\(([^)#\s]+)", (docs / "README.md").read_text()))
    pages = {page.relative_to(docs).as_posix() for page in PAGES if docs in page.parents and page.name != "README.md"}
    assert pages - linked == set()


def blocks(page: Path, language: str) -> list[str]:
    return [text for _, found, text in FENCE.findall(page.read_text()) if found == language]


MANIFESTS = [
    pytest.param(text, id=f"{name_of(page)}-{number}")
    for page in DOCS
    for number, text in enumerate(blocks(page, "yaml"))
    if "kind: MPIJob" in text
]


@pytest.mark.parametrize("text", MANIFESTS)
def test_manifests_in_pages_can_be_copied(text: str) -> None:
    job = read.read(manifest.load(text, "the page"))
    assert list(job.warnings) == []
    assert advice(plan(job.job, keys.generate()).arrangement) == ()


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words after `mpiboot` of every command in a page."""
    text = page.read_text()
    plain = [line for _, language, block in FENCE.findall(text) if language in {"", "sh", "console"}
             for line in block.replace("\\\n", " ").splitlines()]  # fmt: skip
    indented = re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)
    for line in [*plain, *indented, *re.findall(r"`([^`\n]+)`", text)]:
        for found in re.finditer(r"(?:^|[|;] *|\$ )(?:\.venv/bin/)?mpiboot ([^|]*)", line):
            words = re.split(r" {2,}#| # ", found[1])[0]
            try:
                yield shlex.split(words)
            except ValueError:  # a quotation that ends on another line
                yield words.split()


def commands() -> list[object]:
    return [
        pytest.param(words, id=f"{name_of(page)}: {' '.join(words)}"[:100])
        for page in DOCS
        for words in command_lines(page)
        if words and re.fullmatch(r"[a-z]+", words[0])
    ]


@pytest.mark.parametrize("words", commands())
def test_commands_in_pages_exist(words: list[str]) -> None:
    words = list(words)
    if is_of_containers(words):
        known = {option.flag for option in options.options_of(words.pop(0))} | {"--help"}
    else:
        group: click.Command = root
        while isinstance(group, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
            found = group.get_command(click.Context(group), words.pop(0))
            assert found is not None, "there is no such command"
            group = found
        if isinstance(group, click.Group):
            return
        known = {flag for param in group.params for flag in (*param.opts, *param.secondary_opts)} | {"--help"}
    # What follows belongs to a program.
    end = next((at for at, word in enumerate(words) if word in {"--", "mpirun"}), len(words))
    given = {word.partition("=")[0] for word in words[:end] if word.startswith("--")}
    assert sorted(given - known) == []


def test_figures_in_the_readme_are_measured() -> None:
    text = (REPOSITORY / "README.md").read_text()
    rows = re.findall(r"^\| (.+) \| (.*) \| (.*)\| `(\w+\.json)` \|$", text, re.MULTILINE)
    assert len(rows) >= 7
    invented = []
    for what, ours, beside, name in rows:
        results = json.loads((REPOSITORY / "bench" / "results" / name).read_text())["rows"]
        medians = {"ours": [median(row["samples"]) for row in results if row["samples"]],
                   "beside": [median(row["beside"]) for row in results if row.get("beside")]}  # fmt: skip
        for side, shown in (("ours", ours), ("beside", beside)):
            # In `operator_late.json` the other operator has a row of its own.
            known = medians["ours"] + medians["beside"] if side == "beside" else medians["ours"]
            for number in re.findall(r"(?<![\w(])\d+(?:\.\d+)?(?!\))", shown):
                digits = len(number.partition(".")[2])
                if not any(f"{value:.{digits}f}" == number for value in known):
                    invented.append(f"{what}: {number}")
    assert invented == []
