"""Known words that are close to an unknown one: `did you mean ...?`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_WORD = 100  # characters; looking for what is near takes a time that grows with them


def did_you_mean(word: str, known: Iterable[str], most: int = 3, cutoff: float = 0.5) -> str:
    """`did you mean slotsPerWorker?`, or nothing when no known word is near. Case alone is always near."""
    if len(word) > LONGEST_WORD:
        return ""
    from difflib import get_close_matches  # here: only a message about a mistake needs it

    folded = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), folded, most, cutoff)
    return f"did you mean {' or '.join(folded[name] for name in close)}?" if close else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """The same with a semicolon before it, for the end of a message. It names one word, and only a very near one."""
    hint = did_you_mean(word, known, most=1, cutoff=0.65)
    return f"; {hint}" if hint else ""
