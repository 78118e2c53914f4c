"""Lengths of time as users write them: 90, 90s, 10m, 1h30m, 7d."""

from __future__ import annotations

import re

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FORM = "write it like 90s, 10m, 1h30m or 7d"


def seconds(text: str) -> float:
    """The length in seconds. ValueError with a text for the user if it has another form."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no length of time; {FORM}")
    return sum(float(number) * UNITS[unit] for number, unit in parts)
