"""The operator's settings: one line each makes flag, variable, help and default."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from mpiboot.cli.run_operator import operator
from mpiboot.controller.settings import OPTIONS, make
from mpiboot.job.errors import UserError


def test_every_setting_is_a_flag_and_a_variable_with_its_default() -> None:
    text = CliRunner().invoke(operator, ["--help"], terminal_width=200).output
    defaults = make({})
    for option in OPTIONS:
        assert option.flag in text
        assert option.variable in text
        assert getattr(defaults, option.name) == option.default
        assert option.help.endswith(".")


def test_all_that_is_wrong_is_in_one_error() -> None:
    wrong = {"workers": 0, "max_workers": 10**6, "key_type": "rsa", "own_images": "(", "peer_leases": "none"}
    with pytest.raises(UserError) as error:
        make(wrong)
    assert [line.partition(" ")[0].rstrip(":") for line in str(error.value).splitlines()] == [
        "--workers", "--max-workers", "--key-type", "--own-images", "--peer-leases",
    ]  # fmt: skip


def test_what_decides_about_jobs_reaches_their_plans() -> None:
    given = {"gpus_per_node": 3, "cluster_domain": "a.b", "delivery_image": "d", "mount_keys": True, "max_workers": 7}
    found = make({**given, "own_images": "x"}).for_jobs(("http://a",))
    assert (found.units_per_node, found.cluster_domain, found.delivery_image) == (3, "a.b", "d")
    assert (found.mount_keys, found.max_workers, found.own_image_pattern) == (True, 7, "x")
    assert found.checkin_urls == ("http://a",)
