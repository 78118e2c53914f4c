"""A job from its start to its exit code: attempts, deadlines, dead workers, and the user's signals."""

from __future__ import annotations

import queue
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.engines.engine import CancelledError
from mpiboot.engines.inbox import LAUNCHER, Ended, Event, Failed, Inbox, Interrupted, ScaleRequest, in_background

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpiboot.engines.engine import Engine
    from mpiboot.engines.output import Output

OUT_OF_TIME = 124
# How long mpirun may take to notice that a worker is gone. After that we end the job and name the worker as its cause.
NOTICE_WITHIN = 10.0
LONGEST_PAUSE = 60.0


@dataclass(frozen=True)
class Rules:
    """When the job ends, and what is started again."""

    attempts: int = 1  # how often the launcher is started at most
    cluster_retries: int = 0  # how often a cluster would start it again, where this is more
    deadline: float | None = None  # seconds for the whole job
    grace: float | None = 10.0  # seconds between SIGTERM and SIGKILL; None: the engine itself sees to it
    elastic: bool = False  # it goes on with fewer workers
    restarts: bool = False  # its launcher restarts the command, and waits for all workers before
    restart_workers: bool = False
    workers: int = 0  # at the start


class JobFollower:
    """Follows one job. All decisions are made in the thread that calls `until_end`."""

    def __init__(
        self, engine: Engine, inbox: Inbox[Event], rules: Rules, output: Output,
        on_started: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`on_started` is called once all processes have been started."""
        self._engine, self._inbox, self._rules, self._output = engine, inbox, rules, output
        self._on_started = on_started
        self._timers: dict[str, float] = {}  # name -> time; a process's name is the time of its restart
        self._attempt = 1
        self._restarts: dict[str, int] = {}
        self._workers = rules.workers
        self._interrupts = 0
        self._exit_code: int | None = None  # where it is not the launcher's own
        self._ending = False
        self._lost: set[str] = set()

    def until_end(self) -> int:
        """Start the job, wait for its end, and return its exit code. The caller removes it."""
        if self._rules.deadline is not None:
            self._set("deadline", self._rules.deadline)
        start = in_background(self._inbox, self._start, "start")
        try:
            while True:
                code = self._on(self._next())
                if code is not None:
                    return code
        finally:
            # The removal must see all that the start still creates.
            self._engine.cancel()
            start.join()

    def _start(self) -> None:
        self._engine.start()
        self._on_started()

    def _set(self, timer: str, seconds: float) -> None:
        self._timers[timer] = time.monotonic() + seconds

    def _next(self) -> Event | str:
        """The next event, or the name of the timer that ran out."""
        while True:
            first = min(self._timers, key=lambda name: self._timers[name], default=None)
            left = None if first is None else self._timers[first] - time.monotonic()
            if first is not None and left is not None and left <= 0:
                del self._timers[first]
                return first
            try:
                return self._inbox.get(timeout=left)
            except queue.Empty:
                continue

    def _on(self, event: Event | str) -> int | None:
        """Act on an event; the exit code, once it is known."""
        match event:
            case Failed(CancelledError()):
                return self._exit_code if self._exit_code is not None else 1
            case Failed(error):
                raise error
            case Interrupted(signum):
                return self._on_interrupt(signum)
            case Ended("launcher"):
                return self._on_launcher(event)
            case Ended():
                self._on_worker(event)
            case ScaleRequest(workers):
                self._on_scale_request(workers)
            case str():
                return self._on_timer(event)
        return None

    def _on_interrupt(self, signum: int) -> int | None:
        self._interrupts += 1
        self._exit_code = 128 + signum
        if self._interrupts > 1 or signum == signal.SIGPIPE:
            return self._exit_code
        self._engine.cancel()
        if signum == signal.SIGINT:
            self._output.say("ending the job; press Ctrl-C once more to kill it")
        self._end()
        return None

    def _on_launcher(self, event: Ended) -> int | None:
        if self._exit_code is not None:
            return self._exit_code
        if self._ending:
            return event.code or 1
        if event.code == 0:
            return 0
        if event.reason:
            self._output.say(f"the launcher ended with exit code {event.code}: {event.reason}")
        if self._attempt >= self._rules.attempts or self._lost:
            if self._rules.cluster_retries and not self._lost:
                again = self._rules.cluster_retries
                self._output.note(
                    f"the launcher failed with exit code {event.code} and is not started again on this machine; "
                    f"a cluster would do so up to {again} times: --retries {again}"
                )
            return event.code
        pause = min(2.0 ** (self._attempt - 1), LONGEST_PAUSE)
        self._output.say(
            f"the launcher failed with exit code {event.code} (attempt {self._attempt} of {self._rules.attempts}); "
            f"it is started again in {pause:.0f} s"
        )
        self._set(LAUNCHER, pause)
        return None

    def _on_scale_request(self, workers: int) -> None:
        if self._ending or workers == self._workers:
            return
        self._output.note(f"{self._workers} -> {workers} workers, by mpiboot scale")
        self._workers = workers
        for process in [name for name in self._timers if self._is_surplus(name)]:
            del self._timers[process]
        in_background(self._inbox, lambda: self._engine.scale(workers), "scale")

    def _is_surplus(self, process: str) -> bool:
        """Whether it is a worker beyond the number that an elastic job has now."""
        number = process.rpartition("-")[2]
        return self._rules.elastic and number.isdigit() and int(number) >= self._workers

    def _on_worker(self, event: Ended) -> None:
        if self._ending or self._is_surplus(event.process):
            return
        worker = event.process
        why = f": {event.reason}" if event.reason else ""
        text = f"{worker} ended with exit code {event.code}{why}"
        tail = self._output.tail(worker)
        text += "; its last lines:" if tail else "; it printed nothing"
        self._output.say("\n  ".join([text, *tail]))
        waits = self._rules.elastic or self._rules.restarts
        if waits or self._rules.restart_workers:
            times = self._restarts[worker] = self._restarts.get(worker, 0) + 1
            # A job that waits for it gets a new one at once. The pause before each further one doubles.
            first = 0.0 if waits else 1.0
            self._set(worker, min(first if times == 1 else 2.0 ** (times - 1), LONGEST_PAUSE))
            if waits:
                in_background(self._inbox, lambda: self._engine.withdraw(worker), f"withdraw {worker}")
        else:
            self._lost.add(worker)
            self._timers.setdefault("lost", time.monotonic() + NOTICE_WITHIN)

    def _on_timer(self, timer: str) -> int | None:
        if timer == "deadline":
            self._exit_code = OUT_OF_TIME
            self._output.say(f"the job is ended: its activeDeadlineSeconds of {self._rules.deadline:g} s are over")
            self._end()
        elif timer == "lost":
            lost = ", ".join(sorted(self._lost))
            self._output.say(f"the job is ended: {lost} ended {NOTICE_WITHIN:.0f} s ago, and the launcher still runs")
            self._end()
        elif timer == "kill":
            self._output.say(f"the launcher did not end within {self._rules.grace:g} s of SIGTERM and is killed")
            return self._exit_code if self._exit_code is not None else 128 + signal.SIGKILL
        else:
            self._attempt += timer == LAUNCHER
            in_background(self._inbox, lambda: self._engine.restart(timer), f"restart {timer}")
        return None

    def _end(self) -> None:
        """Send the launcher SIGTERM. One that waits for its next attempt has ended already."""
        if self._ending:
            return
        self._ending = True
        waiting = self._timers.pop(LAUNCHER, None) is not None
        self._timers.clear()
        if waiting:
            self._inbox.put(Ended(LAUNCHER, 1))
            return
        if self._rules.grace is not None:
            self._set("kill", self._rules.grace)
        in_background(self._inbox, lambda: self._engine.signal(LAUNCHER, signal.SIGTERM), "end the launcher")
