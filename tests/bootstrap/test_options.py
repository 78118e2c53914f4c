"""The command line of launcher and worker: one table, for the parser, the help and the page in docs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap import config, options
from mpiboot.job.errors import UserError
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

COMMANDS = [command.name for command in options.COMMANDS]


def test_the_command_begins_at_the_first_word_that_is_no_option() -> None:
    parsed = options.parse("launch", ["--init-timeout", "5", "mpirun", "--hostfile", "x", "-n", "4"], {})
    assert parsed.values["init_timeout"] == "5"
    assert parsed.command == ("mpirun", "--hostfile", "x", "-n", "4")


def test_two_dashes_end_the_options() -> None:
    assert options.parse("launch", ["--probe=none", "--", "--odd"], {}).command == ("--odd",)


def test_an_option_overrides_its_variable_which_overrides_the_default() -> None:
    environ = {"MPIBOOT_INIT_TIMEOUT": "7", "MPIBOOT_PROBE": ""}
    assert options.parse("wait", [], environ).values["init_timeout"] == "7"
    assert options.parse("wait", ["--init-timeout=8"], environ).values["init_timeout"] == "8"
    assert options.parse("wait", [], environ).values["probe"] == "banner"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--hostflie", "x"], "unknown option --hostflie; did you mean --hostfile?"),
        (["--hostfile"], "--hostfile needs a value: FILE"),
        (["--probe", "twice"], "--probe must be one of banner, all, none, is 'twice'"),
        (["true"], "'mpiboot wait' runs no command, but was given 'true'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(argv: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        options.parse("wait", argv, {})
    assert message in str(error.value)
    assert "see: mpiboot wait --help" in str(error.value)


def test_all_mistakes_are_reported_at_once() -> None:
    environ = {"MPIBOOT_CHECKIN": "http://x", "MPIBOOT_INIT_TIMEOUT": "soon", "MPIBOOT_MIN_WORKERS": "-1"}
    with pytest.raises(UserError) as error:
        config.launcher(options.parse("launch", ["true"], environ), environ)
    for problem in ("--init-timeout must be a number (seconds), is 'soon'", "--min-workers must be 0 or more",
                    "MPIBOOT_JOB is not", "MPIBOOT_TOKEN is not"):  # fmt: skip
        assert problem in str(error.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e999", ""])
def test_a_time_out_is_a_finite_number(text: str) -> None:
    argv = [f"--init-timeout={text}", "true"]
    with pytest.raises(UserError):
        config.launcher(options.parse("launch", argv, {}), {})


@pytest.mark.parametrize(("text", "on"), [("1", True), ("true", True), ("0", False), ("no", False), ("", False)])
def test_a_switch_may_come_from_the_environment(text: str, on: bool) -> None:
    environ = {"MPIBOOT_STRICT_PLACEMENT": text}
    assert config.launcher(options.parse("launch", ["true"], environ), environ).strict_placement is on


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_its_variable_and_every_exit_code(
    name: str, mpiboot: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = mpiboot(name, "--help")
    assert done.returncode == 0
    for option in options.options_of(name):
        assert option.flag in done.stdout
        assert f"[{option.variable}]" in " ".join(done.stdout.split())
    for code, _ in options.command_named(name).exit_codes:
        assert f"  {code} " in done.stdout


def test_the_page_in_docs_lists_the_same_options() -> None:
    text = (REPOSITORY / "docs" / "launcher.md").read_text()
    given = r"^- `(--[a-z-]+)(?: ([A-Z]+))?` \(`(MPIBOOT_[A-Z_]+)`(?:, default `([^`]+)`)?\):\n  \S"
    listed = re.findall(given, text, re.MULTILINE)
    assert sorted(set(listed)) == sorted({(o.flag, o.metavar, o.variable, o.default) for o in options.OPTIONS})
