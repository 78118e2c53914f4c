"""The table of promises is right, also for a promise without a test."""

from __future__ import annotations

import pytest

from tests.systems.promises import Promise, Promises, all_shown, load, table

TWO = Promises({"X": "a system"}, (Promise("X1", "X", "it runs"), Promise("X2", "X", "it ends")))


def test_a_promise_without_a_test_is_marked_in_the_table() -> None:
    lines = table(TWO, {"X1": {"test_runs": "passed"}})
    assert lines[1:] == ["X  a system: 1 of 2 shown", "   X1   pass     it runs", "   X2   no test  it ends"]
    assert not all_shown(TWO, {"X1": {"test_runs": "passed"}})


def test_one_test_of_a_promise_does_not_make_up_for_another() -> None:
    lines = table(TWO, {"X1": {"good": "passed", "bad": "failed"}, "X2": {"good": "passed", "absent": "skipped"}})
    assert [line.split()[:2] for line in lines if line.startswith("   X")] == [["X1", "FAIL"], ["X2", "not"]]
    assert any(line.endswith("failed: bad") for line in lines)
    assert lines[1] == "X  a system: 0 of 2 shown"


def test_all_is_shown_when_each_promise_has_a_passing_test() -> None:
    assert all_shown(TWO, {"X1": {"a": "passed"}, "X2": {"b": "passed", "c": "passed"}})


def test_the_error_of_an_unknown_mark_names_the_nearest_promise() -> None:
    with pytest.raises(LookupError, match="the nearest is 'X: it runs'"):
        TWO.named("X: it run")


def test_the_list_has_five_systems_and_no_promise_twice() -> None:
    promises = load()
    assert "".join(promises.titles) == "ABCDE"
    assert len({promise.mark for promise in promises.all}) == len(promises.all)
    assert all(promise.id.startswith(promise.system) for promise in promises.all)
