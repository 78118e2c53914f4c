"""The parameters of prototypes: text to numbers."""

from __future__ import annotations

import pytest

from mpiboot.job.errors import UserError
from mpiboot.job.prototypes.openmpi import cluster_of
from mpiboot.job.prototypes.parameter_values import ParameterValues, whole

NO_NUMBER = "--gpus must be a whole number, is "
BAD = {
    "a word": ("two", f"{NO_NUMBER}'two'"),
    "nothing": ("-", f"{NO_NUMBER}'-'"),
    "another script's digit": ("\N{SUPERSCRIPT TWO}", f"{NO_NUMBER}'\N{SUPERSCRIPT TWO}'"),
    "more digits than Python reads": ("9" * 5000, f"{NO_NUMBER}'{'9' * 200}'..."),
    "too small": ("0", "--gpus must be at least 1, is 0"),
    "negative": ("-3", "--gpus must be at least 1, is -3"),
}


@pytest.mark.parametrize(("value", "message"), BAD.values(), ids=BAD)
def test_a_number_that_cannot_be_is_one_line(value: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        whole(value, "--gpus", 1)
    assert str(error.value) == message


def test_a_number_is_read() -> None:
    assert whole("16", "--gpus", 1) == 16
    assert whole("1000680000", "--runAsUser", 0) == 1000680000


def test_openmpi_refuses_more_workers_than_a_job_may_have_before_it_makes_any() -> None:
    with pytest.raises(UserError) as error:
        cluster_of(ParameterValues("name", "", {"workers": "999999999", "secret": "keys"}))
    assert str(error.value) == "--workers must be at most 5000, is 999999999"
