"""Kubernetes' quantities."""

from __future__ import annotations

from decimal import Decimal

import pytest

from mpiboot.job.errors import UserError
from mpiboot.job.quantity import number, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", "0.5"), ("2", "2"), (4, "4"), (0.5, "0.5"), ("1.5", "1.5"), ("1e3", "1000"), ("6Gi", str(6 * 2**30)),
     ("12E", "12000000000000000000"), ("100M", "100000000"), (".5", "0.5"), ("0", "0"), ("1e-1", "0.1")],
)  # fmt: skip
def test_number(text: object, value: str) -> None:
    assert number(text, "limit") == Decimal(value)


def test_bytes_are_rounded_up() -> None:
    assert whole("1.5", "memory") == 2


@pytest.mark.parametrize("text", ["", "many", "6 Gi", "6GiB", "1..2", "--1"])
def test_an_error_names_what_is_no_quantity(text: str) -> None:
    with pytest.raises(UserError, match=r"resources\.limits\.memory"):
        number(text, "resources.limits.memory")
