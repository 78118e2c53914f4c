"""The command line explains itself: walked as a tree, so that a new command cannot forget to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from mpiboot.__main__ import OF_JOBS, is_of_containers
from mpiboot.cli.main import root

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator


def commands(command: click.Command = root, path: str = "mpiboot") -> Iterator[tuple[str, click.Command]]:
    """Every command below, with the words a user types for it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, f"{path} lists {name} and does not have it"
            yield from commands(below, f"{path} {name}")


TREE = list(commands())
LEAVES = [(path, command) for path, command in TREE if not isinstance(command, click.Group)]


@pytest.mark.parametrize(("path", "command"), TREE, ids=[path for path, _ in TREE])
def test_help_starts_with_a_verb_and_lists_exit_codes(path: str, command: click.Command) -> None:
    text = command.help or ""
    first = text.split()[0].rstrip(",") if text else ""
    assert re.fullmatch(r"[A-Z][a-z]+", first), f"{path}: {text[:60]!r}"
    assert not first.endswith(("ing", "ed")), f"{path}: {first}"
    if not isinstance(command, click.Group):
        assert re.search(r"[Ee]xit codes?:", text + (command.epilog or "")), f"{path} does not list its exit codes"


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[path for path, _ in LEAVES])
def test_every_option_has_help(path: str, command: click.Command) -> None:
    bare = [option.opts[-1] for option in command.params if isinstance(option, click.Option) and not option.help]
    assert bare == [], path


def test_help_lists_every_command_in_groups(mpiboot: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    shown = mpiboot("--help").stdout
    headings = ["Options", "Run", "Manifests", "Cluster", "Images", "Inside containers"]
    assert re.findall(r"^([A-Z][a-z ]+):$", shown, re.MULTILINE) == headings
    inside = shown.partition("Inside containers:")[2]
    assert re.findall(r"^  ([a-z]+) ", inside, re.MULTILINE) == ["launch", "worker", "wait", "hosts"]
    listed = re.findall(r"^  ([a-z]+) ", shown.partition("Run:")[2], re.MULTILINE)
    for name in listed:
        assert mpiboot(name, "--help").stdout.startswith(f"Usage: mpiboot {name} "), name


@pytest.mark.parametrize("group", [[], ["generate"], ["images"]], ids=["mpiboot", "generate", "images"])
def test_a_group_without_a_command_prints_its_help(
    group: list[str], typed: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    shown, alone = typed(*group, "--help"), typed(*group)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == shown.stdout


def test_an_unknown_command_is_one_line_and_exit_2(mpiboot: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = mpiboot("imagse", "list")
    assert done.returncode == 2
    assert done.stderr == "mpiboot: there is no command 'imagse'; did you mean images?; see: mpiboot --help\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("words", "of_containers"), [
    (["wait"], True), (["wait", "--help"], True), (["wait", "--init-timeout", "5"], True), (["wait", "pi"], False),
    (["wait", "--timeout", "5m", "pi"], False), (["wait", "--for=running", "pi"], False), (["launch", "pi"], True),
    (["ps"], False), ([], False),
])  # fmt: skip
def test_wait_with_a_job_is_the_command_for_jobs(words: list[str], of_containers: bool) -> None:
    assert is_of_containers(words) == of_containers


def test_every_option_of_wait_leads_to_it() -> None:
    wait = root.get_command(click.Context(root), "wait")
    assert wait
    assert {flag for option in wait.params if isinstance(option, click.Option) for flag in option.opts} == OF_JOBS
