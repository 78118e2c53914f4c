"""The inbox: a signal arrives at every moment of the waiting thread."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from mpiboot.engines.inbox import Event, Inbox, Interrupted, signals_to

ROUNDS = 200
# From another process and at any moment: a thread of this one would hold what the waiting thread must take first.
SENDER = """
import os, random, signal, sys, time
while os.read(0, 1):
    time.sleep(random.random() * 0.003)
    os.kill(os.getppid(), signal.SIGTERM)
"""


def test_a_signal_arrives_just_before_the_wait() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with subprocess.Popen([sys.executable, "-c", SENDER], stdin=subprocess.PIPE, bufsize=0) as sender:
        assert sender.stdin
        for _ in range(ROUNDS):
            inbox: Inbox[Event] = Inbox()
            # The more threads want to run, the longer the main one pauses between its last check and its wait.
            spinning = [threading.Thread(target=lambda: [sum(range(20_000)) for _ in range(30)]) for _ in range(4)]
            with signals_to(inbox):
                for thread in spinning:
                    thread.start()
                sender.stdin.write(b".")
                assert inbox.get(timeout=60) == Interrupted(signal.SIGTERM)
            for thread in spinning:
                thread.join()
        sender.stdin.close()
    assert signal.getsignal(signal.SIGTERM) == before
