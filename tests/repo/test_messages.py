"""docs/reference/messages.md holds every text that a user can read, as the code has it."""

from __future__ import annotations

from messages import page
from messages.texts import texts

SAMPLE = '''"""A docstring is not a message."""
import re
PATTERN = re.compile("not a message")
class BadError(UserError):
    """Nor is this."""
    def __init__(self, path: "Path of it", error: OSError, names: list[str]) -> None:
        super().__init__(f"cannot read {path.name!r}: {error.strerror}; known: {', '.join(sorted(names))}")
log.warning("%s: no answer in %.1f s", worker.address, limit)
option("--workers", help="Number of workers. "
       "At least one.")
ended = "ended" if code else f"exit code {code}"
SCRIPT = "command -v sshd >/dev/null || exit 3"
FIELDS = "name value items".split()
'''


def test_every_text_of_a_file_is_found_with_what_is_filled_in() -> None:
    assert list(texts(SAMPLE)) == [
        "cannot read {name}: {strerror}; known: {names}",
        "{address}: no answer in {limit} s",
        "Number of workers. At least one.",
        "exit code {code}",
    ]


def test_the_page_fits_the_width_and_markdown_shows_its_texts_as_they_are() -> None:
    assert max(map(len, page.text().splitlines())) <= 120
    assert page._item(page._plain("-n <N> is *not* #1 " + "word " * 30)).startswith(r"- -n \<N> is \*not\* #1")


def test_one_message_of_each_subject_is_on_the_page() -> None:
    subjects = {part.split("\n")[0]: part for part in page.text().split("\n## ")}
    for title, file in {
        "Commands and options": "mpiboot run",
        "Manifests": "job/read/fields.py",
        "The operator": "controller/status.py",
        "Launcher and workers": "bootstrap/worker.py",
        "Jobs on this machine and on a cluster": "engines/follow.py",
        "Images": "images/matrix.py",
    }.items():
        assert f"### {file}\n\n" in subjects[title]


def test_files_that_are_left_out_of_the_page_are_there() -> None:
    assert [path for path in page.LEFT_OUT if not (page.ROOT / path).exists()] == []


def test_the_page_in_docs_has_the_texts_of_the_code() -> None:
    assert page.PAGE.read_text() == page.text(), "run: make reference"
