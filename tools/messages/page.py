"""The page of all messages: what the commands say of themselves, then every text of the code, by subject and file."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from messages.texts import texts
from mpiboot.bootstrap import options
from mpiboot.cli.main import root

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "messages.md"
WIDTH = 120
HEAD = """\
# Messages

Every text that mpiboot prints, logs, or sends as an event or a condition. Look here for the meaning of a message, and
for the file that it comes from. `{name}` stands for what is filled in. Longer messages are made of several texts.

`make reference` writes this page from the code; edits here are lost.
"""


class Subject(NamedTuple):
    """A part of the page: its title, where a user meets its texts, and the folders that they come from."""

    title: str
    about: str
    folders: tuple[str, ...]


SUBJECTS = (
    Subject(
        "Manifests",
        "What `mpiboot lint`, `run`, `convert` and `generate` print about a manifest. The operator sends the same "
        "problems as the events ValidationError and ValidationWarning.",
        ("job/",),
    ),
    Subject(
        "The operator",
        "Events, conditions and the status of an MPIJob, the operator's log, and the descriptions that "
        "`kubectl explain mpijob` prints.",
        ("controller/", "kube/"),
    ),
    Subject(
        "Launcher and workers",
        "Lines in the logs of a job's pods or containers. Each begins with `mpiboot:`.",
        ("bootstrap/", "ssh/", "checkin/"),
    ),
    Subject(
        "Jobs on this machine and on a cluster",
        "What `mpiboot run`, `ps`, `logs`, `scale`, `delete` and `status` print.",
        ("cli/", "engines/", "containers/"),
    ),
    Subject(
        "Images",
        "What `mpiboot images` prints. The points of the contract have [their own page](../image-contract.md).",
        ("images/",),
    ),
)
# Files with prose that is no message, each with the reason.
LEFT_OUT = {
    "controller/install/rights.py": "names of rights",
    "images/check/contract_page.py": "the text of docs/image-contract.md",
    "images/contract.py": "docs/image-contract.md is made from it",
    "job/read/podfields.py": "names of fields of pods",
    "ssh/client.py": "settings of ssh",
    "ssh/server.py": "settings of sshd",
    "engines/timeline/style.py": "how a timeline looks",
    "images/kit/": "programs of the images, not of mpiboot",
}
# The files whose texts are, in part, the help that stands at the top of the page.
HELP_FILES = ("bootstrap/options.py", "cli/", "controller/settings.py")


def text() -> str:
    """The whole page."""
    help_lines = list(_help())
    in_help = " ".join(" ".join(help_lines).split())
    parts = [HEAD, "## Commands and options\n", *help_lines]
    for subject in SUBJECTS:
        parts += ["", f"## {subject.title}", "", textwrap.fill(subject.about, WIDTH), ""]
        for file in _files(subject.folders):
            source = (ROOT / file).read_text()
            known = in_help if file.startswith(HELP_FILES) else ""
            found = [each for each in texts(source) if _plain(each) not in known]
            if found:
                parts += [f"### {file}", "", *(_item(_plain(each)) for each in found), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _item(markdown: str) -> str:
    return textwrap.fill(
        markdown, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _option(name: str, meaning: str) -> str:
    return _item(f"`{name}`: {_plain(meaning)}")


def _plain(message: str) -> str:
    """The text, written so that Markdown shows it as it is."""
    return re.sub(r"([*<\\]|(?<!\w)_|^[#>]|^[+-](?=\s))", r"\\\1", " ".join(message.split()))


def _files(folders: tuple[str, ...]) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [file for file in listed if file.endswith(".py") and not file.startswith(tuple(LEFT_OUT))]
    return sorted((file for file in files if (ROOT / file).is_file()), key=lambda file: _turn(file, folders))


def _turn(file: str, folders: tuple[str, ...]) -> tuple[int, str]:
    return next(turn for turn, folder in enumerate(folders) if file.startswith(folder)), file


def _help() -> Iterator[str]:
    inside = [command.name for command in options.COMMANDS]
    for path, command in _commands(root, "mpiboot"):
        if path.removeprefix("mpiboot ") in inside:
            continue
        yield from ("", f"### {path}", "")
        for paragraph in (command.help or "").split("\n\n") + ([command.epilog] if command.epilog else []):
            yield from (textwrap.fill(_plain(paragraph), WIDTH), "")
        context = click.Context(command, info_name=path)
        # click keeps the first help option that it makes: its names depend on who asked before.
        parameters = [each for each in command.get_params(context) if each is not command.get_help_option(context)]
        records = [each.get_help_record(context) for each in parameters]
        yield from (_option(*record) for record in records if record and record[1])
    for each in options.COMMANDS:
        yield from ("", f"### mpiboot {each.name}", "", f"{_plain(each.summary)} `{each.usage}`", "")
        for option in options.options_of(each.name):
            default = f" [default: {option.default}]" if option.default else ""
            yield _option(f"{option.flag} {option.metavar}".strip(), option.help + default)
        yield from (_option(f"exit code {code}", meaning) for code, meaning in each.exit_codes)


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            yield from _commands(below, f"{path} {name}")
