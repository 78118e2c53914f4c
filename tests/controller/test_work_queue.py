"""The work queue: one key in order, several in parallel, with growing pauses after failures."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from mpiboot.controller.work_queue import LONGEST_REST, Queue
from mpiboot.kube.api_error import ApiError, TroubleError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

PATIENCE = 60.0


def work(seconds: float) -> None:
    """Take this much of the thread's own time: the machine may be busy with others."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def run(handle: Callable[[str], Awaitable[float | None]], use: Callable[[Queue], Awaitable[None]]) -> None:
    """Use a queue of four workers."""

    async def main() -> None:
        queue = Queue(handle, 4)
        task = asyncio.create_task(queue.run())
        try:
            async with asyncio.timeout(PATIENCE):
                await use(queue)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_a_key_is_never_handled_twice_at_once_and_changes_meanwhile_mean_once_more() -> None:
    calls, at_once, most = 0, 0, 0
    going, begun = asyncio.Event(), asyncio.Event()

    async def handle(_: str) -> None:
        nonlocal calls, at_once, most
        calls, at_once = calls + 1, at_once + 1
        most = max(most, at_once)
        begun.set()
        await going.wait()
        at_once -= 1

    async def use(queue: Queue) -> None:
        queue.add("a")
        await begun.wait()
        for _ in range(5):
            queue.add("a")
        going.set()
        while calls < 2 or len(queue):
            await asyncio.sleep(0.01)

    run(handle, use)
    assert (calls, most) == (2, 1)


def test_different_keys_are_handled_at_once() -> None:
    together = asyncio.Barrier(4)

    async def handle(_: str) -> None:
        await together.wait()

    async def use(queue: Queue) -> None:
        for key in "abcd":
            queue.add(key)
        while len(queue):
            await asyncio.sleep(0.01)

    run(handle, use)


def test_a_key_is_handled_again_after_the_returned_delay() -> None:
    calls = 0

    async def handle(_: str) -> float | None:
        nonlocal calls
        calls += 1
        return 0.05 if calls < 3 else None

    async def use(queue: Queue) -> None:
        queue.add("a")
        while calls < 3:
            await asyncio.sleep(0.01)

    run(handle, use)


def pauses_of(queue: Queue) -> list[float]:
    """The pauses that the queue makes from now on, in seconds, as it asks the loop for them."""
    pauses: list[float] = []
    add_later = queue._add_later

    def recorded(key: str, after: float) -> None:
        pauses.append(after)
        add_later(key, after)

    queue._add_later = recorded  # type: ignore[method-assign]
    return pauses


def test_failures_are_retried_with_growing_pauses_that_end_with_the_object() -> None:
    calls = 0
    done = asyncio.Event()

    async def handle(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            done.set()
            return
        raise TroubleError("no")

    async def use(queue: Queue) -> None:
        pauses = pauses_of(queue)
        queue.add("a")
        await done.wait()
        assert pauses[3] > pauses[0] * 3
        assert "a" not in queue._failures
        queue._failures["b"] = 30
        queue.forget("b")
        assert queue._failures == {}

    run(handle, use)


def test_an_object_that_others_write_all_the_time_is_retried_with_growing_pauses() -> None:
    calls = 0
    done = asyncio.Event()

    async def handle(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:
            done.set()
            return
        raise ApiError(409, "Conflict", "the object has been modified")

    async def use(queue: Queue) -> None:
        pauses = pauses_of(queue)
        queue.add("a")
        await done.wait()
        assert pauses[4] > pauses[0] * 5

    run(handle, use)


def test_one_broken_key_does_not_end_the_work_on_others() -> None:
    seen = asyncio.Event()

    async def handle(key: str) -> None:
        if key == "bad":
            raise RuntimeError("a mistake of ours")
        seen.set()

    async def use(queue: Queue) -> None:
        queue.add("bad")
        queue.add("good")
        await seen.wait()

    run(handle, use)


def test_an_expensive_key_rests_before_it_is_handled_again() -> None:
    times: list[float] = []

    async def handle(_: str) -> None:
        times.append(asyncio.get_running_loop().time())
        work(0.05)

    async def use(queue: Queue) -> None:
        queue.add("a")
        while len(times) < 3:
            queue.add("a")
            await asyncio.sleep(0.005)

    run(handle, use)
    assert all(b - a > 0.1 for a, b in pairwise(times))


def test_a_rest_is_not_ended_by_the_one_before_on_a_loop_that_was_held_up() -> None:
    begun: list[float] = []
    ended: list[float] = []

    async def handle(_: str) -> None:
        begun.append(asyncio.get_running_loop().time())
        work(0.05)
        ended.append(asyncio.get_running_loop().time())

    async def use(queue: Queue) -> None:
        queue.add("a")
        while len(queue):
            await asyncio.sleep(0)
        time.sleep(LONGEST_REST * 1.1)  # the first rest is over now, and its timer could not run
        queue.add("a")
        while len(begun) < 3:
            await asyncio.sleep(0)
            queue.add("a")

    run(handle, use)
    assert begun[2] - ended[1] > 0.1


def test_a_job_is_not_handled_again_before_the_server_wants_it_whatever_changes() -> None:
    calls: list[float] = []

    async def handle(_: str) -> None:
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise ApiError(429, "TooManyRequests", "later", retry_after=1.0)

    async def use(queue: Queue) -> None:
        queue.add("a")
        while len(calls) < 2:
            queue.add("a")
            await asyncio.sleep(0.02)
        assert calls[1] - calls[0] >= 0.99

    run(handle, use)


def test_the_end_of_an_outage_wakes_the_jobs_that_wait_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiboot.controller.work_queue.FIRST_BACK_OFF", 10 * PATIENCE)
    monkeypatch.setattr("mpiboot.controller.work_queue.LONGEST_BACK_OFF", 10 * PATIENCE)
    calls: list[str] = []

    async def handle(key: str) -> None:
        calls.append(key)
        if len(calls) < 3:
            raise UnreachableError("away")

    async def use(queue: Queue) -> None:
        queue.add("a")
        queue.add("b")
        while len(calls) < 2 or len(queue):
            await asyncio.sleep(0.01)
        queue.wake()
        while len(calls) < 4:
            await asyncio.sleep(0.01)
        assert sorted(calls) == ["a", "a", "b", "b"]

    run(handle, use)
