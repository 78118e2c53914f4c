"""`make check` finds unused code, lines that are too wide, and words that are out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checks import width, words
from checks.files import File, tracked

REPOSITORY = Path(__file__).resolve().parents[2]


def found(path: str, text: str) -> list[int]:
    """The lines with words that are out."""
    return sorted(problem.line for problem in words.check(File(path, text)))


@pytest.mark.parametrize("path", ["docs/run.md", "job/read/read.py", "images/Dockerfile", "tools/run.sh", "bench/a.c"])
def test_a_wide_line_is_a_problem_in_every_kind_of_file(path: str) -> None:
    (problem,) = width.check(File(path, "short\n" + "word " * 24 + "word\nshort\n"))
    assert (problem.path, problem.line) == (path, 2)
    assert str(problem) == f"{path}:2: 124 characters, at most 120"


def test_a_line_of_120_characters_is_none() -> None:
    assert list(width.check(File("docs/run.md", "word " * 23 + "words"))) == []


@pytest.mark.parametrize("line", ["- [a](https://{})", "    # https://{}", "{}", "x = 1  # noqa: {}"])
def test_a_wide_line_that_cannot_be_broken_is_none(line: str) -> None:
    assert list(width.check(File("job/read/read.py", line.format("x" * 120)))) == []


def test_a_wide_row_of_a_table_is_a_problem() -> None:
    assert list(width.check(File("docs/run.md", "| " + "x" * 60 + " | " + "x" * 60 + " |")))


def test_every_exception_to_the_width_is_for_files_that_are_there() -> None:
    paths = [file.path for file in tracked()]
    from fnmatch import fnmatch

    assert [each for each in width.EXCEPT if not any(fnmatch(path, each) for path in paths)] == []
    assert [path for path in width.ONE_LINE if path not in paths] == []


def test_every_row_of_the_table_is_found_in_docs_and_comments() -> None:
    for pattern, instead in words.words():
        example = next(text for text in ROWS if pattern.search(text))
        assert found("docs/run.md", f"Fine.\n{example}\n") == [2], instead
        assert found("job/read/read.py", f"x = 1\ny = 2  # {example}\n") == [2], instead


ROWS = [
    "a file is for whoever reads it", "nobody waits", "somebody else waits", "to whom it goes", "it is told of it",
    "that is said at once", "it speaks of a job", "the one who only looks at it", "it hears of it", "as is known",
    "it has no word for it", "it keeps still", "in silence", "write it anew", "it shall end", "upon which it ends",
    "a wish for more", "what mends it", "a dear call", "one cannot know",
]  # fmt: skip


def test_a_phrase_is_found_across_lines_and_parts_of_a_text() -> None:
    assert found("docs/run.md", "The worker is\ntold that\n") == [1]
    assert found("job/read/read.py", '# The worker is\n# told that\nx = "it is " f"told {1}"\n') == [1, 3]
    assert found("job/read/read.py", '"""One line.\n\nNobody waits.\n"""\n') == [3]


def test_names_of_tests_are_read_as_sentences() -> None:
    assert found("tests/test_x.py", "def test_whoever_asks_is_told() -> None: ...\n") == [1, 1]


def test_code_and_data_are_not_prose() -> None:
    assert found("job/a.py", 'nobody = somebody(user="nobody")\nshall, NOBODY = 1, 2  # NOBODY is 65534\n') == []
    assert found("docs/run.md", "Run it as `nobody`.\n") == []


def test_a_problem_says_where_it_is_and_what_to_write() -> None:
    (problem,) = words.check(File("docs/run.md", "one\ntwo anew\n"))
    assert str(problem) == 'docs/run.md:2: "anew" is out; write: again'


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    """A repository that has the checks and one page."""
    shutil.copytree(REPOSITORY / "tools" / "checks", tmp_path / "tools" / "checks")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    return tmp_path


@pytest.mark.parametrize(("text", "name"), [("Nobody waits.\n", "words"), ("word " * 30, "width")])
def test_the_command_fails_with_the_places(checks: Path, text: str, name: str) -> None:
    (checks / "page.md").write_text(text)
    done = subprocess.run([sys.executable, "tools/checks", name], cwd=checks, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("page.md:1: ")
    assert done.stdout.endswith(f"check: {name}: 1 places to change\n")


def test_unused_code_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def never_called():\n    pass\n")
    settings = ["--config", str(REPOSITORY / "pyproject.toml")]
    command = [str(Path(sys.executable).with_name("vulture")), *settings, "bad.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3
    assert "bad.py:1: unused function 'never_called'" in done.stdout
