"""A job from its start to its exit code: attempts, deadlines, dead workers, the user's wish to end it."""

from __future__ import annotations

import queue
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpiboot.engines.inbox import LAUNCHER, Broke, Ended, Event, Inbox, Interrupted, Resize, background
from mpiboot.engines.place import CancelledError

if TYPE_CHECKING:
    from mpiboot.engines.output import Output
    from mpiboot.engines.place import Place

OUT_OF_TIME = 124
# How long mpirun may take to notice by itself that a worker is gone, before we end it with that as the cause.
NOTICE_WITHIN = 10.0
LONGEST_PAUSE = 60.0


@dataclass(frozen=True)
class Rules:
    """What the job says about its own end."""

    attempts: int = 1  # how often the launcher is started at most
    deadline: float | None = None  # seconds for all of it
    grace: float = 10.0  # seconds between SIGTERM and SIGKILL
    elastic: bool = False  # it goes on with fewer workers
    restart_workers: bool = False
    workers: int = 0  # how many there are to begin with


class Follow:
    """Follows one job. All decisions are made in the thread that calls `until_end`."""

    def __init__(self, place: Place, inbox: Inbox[Event], rules: Rules, output: Output) -> None:
        self._place, self._inbox, self._rules, self._output = place, inbox, rules, output
        self._timers: dict[str, float] = {}
        self._attempt = 1
        self._restarts: dict[str, int] = {}
        self._workers = rules.workers
        self._asked = 0  # how often the user asked for the end
        self._verdict: int | None = None  # the exit code, where it is not the launcher's own
        self._ending = False
        self._lost: set[str] = set()

    def until_end(self) -> int:
        """Bring the job up, wait for its end, and return its exit code. Removing it is the caller's."""
        if self._rules.deadline is not None:
            self._set("deadline", self._rules.deadline)
        bringing_up = background(self._inbox, self._place.bring_up, "bring-up")
        try:
            while True:
                code = self._on(self._next())
                if code is not None:
                    return code
        finally:
            # Whatever it still creates must be there to be seen by the removal.
            self._place.cancel()
            bringing_up.join()

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
        """Act on it; the exit code, once it is known."""
        match event:
            case Broke(CancelledError()):
                return self._verdict if self._verdict is not None else 1
            case Broke(error):
                raise error
            case Interrupted(signum):
                return self._on_interrupt(signum)
            case Ended("launcher"):
                return self._on_launcher(event)
            case Ended():
                self._on_worker(event)
            case Resize(workers):
                self._on_resize(workers)
            case str():
                return self._on_timer(event)
        return None

    def _on_interrupt(self, signum: int) -> int | None:
        self._asked += 1
        self._verdict = 128 + signum
        if self._asked > 1 or signum == signal.SIGPIPE:
            return self._verdict
        self._place.cancel()
        if signum == signal.SIGINT:
            self._output.say("ending the job; press Ctrl-C once more to kill it")
        self._end()
        return None

    def _on_launcher(self, event: Ended) -> int | None:
        if self._verdict is not None:
            return self._verdict
        if self._ending:
            return event.code or 1
        if event.code == 0:
            return 0
        if event.reason:
            self._output.say(f"the launcher ended with exit code {event.code}: {event.reason}")
        if self._attempt >= self._rules.attempts or self._lost:
            return event.code
        pause = min(2.0 ** (self._attempt - 1), LONGEST_PAUSE)
        self._output.say(
            f"the launcher failed with exit code {event.code} (attempt {self._attempt} of {self._rules.attempts}); "
            f"it is started again in {pause:.0f} s"
        )
        self._set(LAUNCHER, pause)
        return None

    def _on_resize(self, workers: int) -> None:
        if self._ending or workers == self._workers:
            return
        self._output.note(f"{self._workers} -> {workers} workers, as asked for")
        self._workers = workers
        for who in [name for name in self._timers if self._left_out(name)]:
            del self._timers[who]
        background(self._inbox, lambda: self._place.resize(workers), "resize")

    def _left_out(self, who: str) -> bool:
        """Whether it is a worker that an elastic job is not meant to have any more."""
        number = who.rpartition("-")[2]
        return self._rules.elastic and number.isdigit() and int(number) >= self._workers

    def _on_worker(self, event: Ended) -> None:
        if self._ending or self._left_out(event.who):
            return
        why = f": {event.reason}" if event.reason else ""
        text = f"{event.who} ended with exit code {event.code}{why}"
        tail = self._output.tail(event.who)
        text += "; its last lines:" if tail else "; it had printed nothing"
        self._output.say("\n  ".join([text, *tail]))
        if self._rules.elastic or self._rules.restart_workers:
            times = self._restarts[event.who] = self._restarts.get(event.who, 0) + 1
            # An elastic job gets a new one at once, and ever later if that dies, too.
            first = 0.0 if self._rules.elastic else 1.0
            self._set(event.who, min(first if times == 1 else 2.0 ** (times - 1), LONGEST_PAUSE))
            if self._rules.elastic:
                background(self._inbox, lambda: self._place.lose(event.who), f"lose {event.who}")
        else:
            self._lost.add(event.who)
            self._timers.setdefault("lost", time.monotonic() + NOTICE_WITHIN)

    def _on_timer(self, timer: str) -> int | None:
        if timer == "deadline":
            self._verdict = OUT_OF_TIME
            self._output.say(f"out of time: the job's activeDeadlineSeconds of {self._rules.deadline:g} s are over")
            self._end()
        elif timer == "lost":
            self._output.say(f"ending the job: {', '.join(sorted(self._lost))} is gone for {NOTICE_WITHIN:.0f} s")
            self._end()
        elif timer == "kill":
            self._output.say(f"the launcher did not end within {self._rules.grace:g} s of SIGTERM and is killed")
            return self._verdict if self._verdict is not None else 128 + signal.SIGKILL
        else:
            self._attempt += timer == LAUNCHER
            background(self._inbox, lambda: self._place.start_again(timer), f"start {timer} again")
        return None

    def _end(self) -> None:
        """Ask the launcher to end. A launcher that waits to be started again has ended already."""
        if self._ending:
            return
        self._ending = True
        waiting = self._timers.pop(LAUNCHER, None) is not None
        self._timers.clear()
        if waiting:
            self._inbox.put(Ended(LAUNCHER, 1))
            return
        self._set("kill", self._rules.grace)
        background(self._inbox, lambda: self._place.signal(LAUNCHER, signal.SIGTERM), "end the launcher")
