"""Kubernetes' quantities as numbers: `500m`, `2`, `6Gi`, `1e9`."""

from __future__ import annotations

import re
from decimal import Decimal

from mpiboot.job.errors import UserError

FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}  # fmt: skip
# A quantity has at most 18 digits before the point. Without a bound, 1e999999999 would take all memory.
LONGEST, LARGEST_EXPONENT = 64, 30
SHAPE = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:[eE]([+-]?\d+))?([a-zA-Z]*)")


def number(quantity: object, what: str) -> Decimal:
    """The value of a quantity in its own unit (cores, bytes). `what` names it in the error."""
    text = str(quantity).strip()
    match = SHAPE.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or match[3] not in FACTORS or abs(int(match[2] or 0)) > LARGEST_EXPONENT:
        raise UserError(f"{what}: {text[:LONGEST]!r} is not a quantity; write it like 500m, 2 or 6Gi")
    return Decimal(match[1]) * Decimal(10) ** int(match[2] or 0) * FACTORS[match[3]]


def as_quantity(value: Decimal) -> str:
    """A value as Kubernetes writes it: a whole number, or thousandths of its unit."""
    if value == value.to_integral_value():
        return f"{value:.0f}"
    return f"{(value * 1000).to_integral_value('ROUND_CEILING'):.0f}m"


def whole(quantity: object, what: str) -> int:
    """The value rounded up to a whole number, as in Kubernetes."""
    value = number(quantity, what)
    return int(value.to_integral_value(rounding="ROUND_CEILING"))
