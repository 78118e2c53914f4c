"""Whether a command that failed runs again on the same workers, after which pause, and the line about it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

# An attempt that ended sooner has done nothing worth repeating at once: each further one waits twice as long.
QUICK = 10.0
LONGEST_PAUSE = 60.0
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Ended(NamedTuple):
    """How an attempt ended. `final`: why no further attempt can succeed; empty if one may."""

    code: int
    cause: str
    seconds: float
    final: str = ""

    @property
    def quick(self) -> bool:
        return self.seconds < QUICK


class Verdict(NamedTuple):
    """Whether to run the command again, after how many seconds, and the line for the log."""

    again: bool
    pause: float
    text: str


class Attempts:
    """Counts the attempts of one launcher."""

    def __init__(self, restarts: int, final_codes: Collection[int]) -> None:
        self.number, self.most = 1, restarts + 1
        self._final_codes = final_codes
        self._before: list[Ended] = []

    def ended(self, attempt: Ended) -> Verdict:
        """The verdict about an attempt that failed. The next one gets the next number."""
        alike = self._alike(attempt)
        like = f" like the {_number(alike)} before" if alike else ""
        text = f"attempt {self.number} of {self.most} ended after {attempt.seconds:.1f} s{like}: {attempt.cause}"
        self._before.append(attempt)
        final = attempt.final
        if not final and attempt.code in self._final_codes:
            final = f"code {attempt.code} is final (--final-codes)"
        if final or self.number == self.most:
            return Verdict(again=False, pause=0.0, text=f"{text}; {final}" if final else text)
        pause = self._pause()
        self.number += 1
        when = f" in {pause:g} s" if pause else ""
        return Verdict(again=True, pause=pause, text=f"{text}; attempt {self.number} starts{when}")

    def _alike(self, attempt: Ended) -> int:
        """How many attempts directly before this one ended as quickly, and with the same code."""
        count = 0
        for before in reversed(self._before):
            if not (attempt.quick and before.quick and attempt.code == before.code):
                break
            count += 1
        return count

    def _pause(self) -> float:
        quick = 0
        for attempt in reversed(self._before):
            if not attempt.quick:
                break
            quick += 1
        return min(2.0 ** (quick - 2), LONGEST_PAUSE) if quick > 1 else 0.0


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)
