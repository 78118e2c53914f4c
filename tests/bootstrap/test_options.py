"""The command line of launcher and worker: one table, for the quick parser, for click, and for the page in docs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from mpiboot.bootstrap import config, options
from mpiboot.cli.launch import hosts, launch, wait, worker
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

CLICK = {"launch": launch, "wait": wait, "hosts": hosts, "worker": worker}


def test_the_command_begins_at_the_first_word_that_is_no_option() -> None:
    parsed = options.parse("launch", ["--init-timeout", "5", "mpirun", "--hostfile", "x", "-n", "4"], {})
    assert parsed.values["init_timeout"] == "5"
    assert parsed.command == ("mpirun", "--hostfile", "x", "-n", "4")


def test_two_dashes_end_the_options() -> None:
    assert options.parse("launch", ["--probe=none", "--", "--odd"], {}).command == ("--odd",)


def test_an_option_beats_its_variable_which_beats_the_default() -> None:
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
    with pytest.raises(options.OptionError) as error:
        options.parse("wait", argv, {})
    assert message in str(error.value)
    assert "see: mpiboot wait --help" in str(error.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    environ = {"MPIBOOT_CHECKIN": "http://x", "MPIBOOT_INIT_TIMEOUT": "soon", "MPIBOOT_MIN_WORKERS": "-1"}
    with pytest.raises(config.ConfigError) as error:
        config.launcher(options.parse("launch", ["true"], environ), environ)
    for problem in ("--init-timeout must be a number (seconds), is 'soon'", "--min-workers must be 0 or more",
                    "MPIBOOT_JOB is not", "MPIBOOT_TOKEN is not"):  # fmt: skip
        assert problem in str(error.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e999", ""])
def test_a_time_out_is_a_finite_number(text: str) -> None:
    argv = [f"--init-timeout={text}", "true"]
    with pytest.raises(config.ConfigError):
        config.launcher(options.parse("launch", argv, {}), {})


@pytest.mark.parametrize(("text", "on"), [("1", True), ("true", True), ("0", False), ("no", False), ("", False)])
def test_a_switch_may_come_from_the_environment(text: str, on: bool) -> None:
    environ = {"MPIBOOT_STRICT_PLACEMENT": text}
    assert config.launcher(options.parse("launch", ["true"], environ), environ).strict_placement is on


@pytest.mark.parametrize("name", CLICK)
def test_click_knows_the_same_options(name: str) -> None:
    theirs = {p.opts[0] for p in CLICK[name].params if isinstance(p, click.Option)} - {"--help"}
    assert theirs == {option.flag for option in options.options_of(name)}


@pytest.mark.parametrize("name", CLICK)
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
    rows = re.findall(r"^\| `(--[a-z-]+)(?: [A-Z]+)?` \| `(MPIBOOT_[A-Z_]+)` \| (.*?) \|", text, re.MULTILINE)
    listed = {(flag, variable, default.strip("`")) for flag, variable, default in rows}
    assert listed == {(o.flag, o.variable, o.default) for o in options.OPTIONS}
