"""Ranks that end before Horovod has begun in them: the job ends with them, or starts them again where others wait."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Tag = Callable[[str], str]
    Inside = Callable[..., tuple[int, str]]

DRIVER = Path(__file__).with_name("joining.py").read_text()


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("1 none", "0 -> 0"),
        ("2 none", "0 1 -> 0"),
        ("1 all", "0 -> 2"),
        ("2 all", "0 1 -> 2"),
        ("3 all", "0 1 2 -> 2"),
        ("2 1 once", "0 1 1 -> 0"),
        ("2 0 once", "0 0 1 -> 0"),
        ("2 1", "0 1 1 1-elsewhere -> 1 2"),
        ("3 0", "0 0 0-elsewhere 1 2 -> 1 2"),
    ],
)
def test_a_rank_is_started_again_only_where_another_waits_for_it(
    image: Tag, inside: Inside, case: str, said: str
) -> None:
    code, text = inside(image("horovod-torch"), "python", "-c", DRIVER, *case.split())
    assert code == 0, text
    assert said in text.splitlines(), text  # among what is logged at the same time
