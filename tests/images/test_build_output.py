"""BuildKit's plain output, read line by line: the output below was recorded from real builds."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

from mpiboot.images.build.build import hint
from mpiboot.images.build.build_output import Step, Steps, name_of
from mpiboot.images.build.progress import Progress

if TYPE_CHECKING:
    import pytest

FAILED = """\
#1 [internal] load build definition from Dockerfile
#1 sha256:ca75386f20dab2b2750c6e4956c98736286197c5f58508c2007a4f29cfd68d72
#1 DONE 0.0s
#4 [ssh 1/2] FROM docker.io/mpiboot/debian:trixie-slim
#4 CACHED
#16 [package 1/1] COPY package/ /
#16 DONE 0.0s
#13 [openmpi 1/1] RUN --mount=type=bind,from=kit,source=/openmpi,target=/step     sh /step/install.sh
#13 0.471 Get:1 http://mirror trixie InRelease [140 kB]
#13 DONE 6.1s
#14 [image 1/2] RUN --mount=type=bind,from=kit,source=/mpi4py,target=/step     sh /step/install.sh
#14 0.544 ERROR: No matching distribution found for mpi4py==0.0.1
#14 ERROR: executor failed running [/bin/sh -c sh /step/install.sh]: exit code: 1
------
 > [image 1/2] RUN --mount=type=bind,from=kit,source=/mpi4py,target=/step     sh /step/install.sh:
------
executor failed running [/bin/sh -c sh /step/install.sh]: exit code: 1
"""


def read(text: str) -> Steps:
    steps = Steps()
    for line in text.splitlines():
        steps.read(line)
    return steps


def test_failing_step_has_its_own_log_and_no_other() -> None:
    failed = read(FAILED).failed
    assert failed is not None
    assert failed.name == "mpi4py"
    assert failed.log == [
        "ERROR: No matching distribution found for mpi4py==0.0.1",
        "ERROR: executor failed running [/bin/sh -c sh /step/install.sh]: exit code: 1",
    ]


def test_states_and_times() -> None:
    steps = read(FAILED)
    assert [(step.name, step.state) for step in steps.all.values() if step.counts] == [
        ("openmpi", "done"),
        ("mpi4py", "failed"),
    ]
    assert steps.all["13"].seconds == 6.1


def test_complaint_that_belongs_to_no_step_is_kept() -> None:
    steps = read("error during connect: the daemon went away\n")
    assert steps.failed is None
    assert steps.other == ["error during connect: the daemon went away"]


def test_current_step_is_the_latest_that_runs() -> None:
    steps = Steps()
    steps.read("#7 [workshop 3/6] RUN --mount=type=secret,id=ca     . /kit/lib.sh && apt_install gcc")
    steps.read("#8 [internal] load build context")
    assert steps.current is not None
    assert steps.current.name == "workshop: RUN . /kit/lib.sh && apt_install gcc"


def test_step_is_called_by_its_folder_else_by_its_instruction() -> None:
    assert name_of("[dev 1/1] RUN --mount=type=bind,from=kit,source=/dev,target=/step sh /step/install.sh") == "dev"
    assert name_of("[kit 1/2] COPY --from=workshop /kit/ /lib/") == "kit: COPY --from=workshop /kit/ /lib/"


def test_hints_for_what_a_person_can_change() -> None:
    # The first three are what cp, pip and apt print.
    assert "disk" in hint(["cp: error writing '/usr/lib/x': No space left on device"])
    assert "SSL_CERT_FILE" in hint(["[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get issuer"])
    assert "http_proxy" in hint(["Err:1 Temporary failure resolving 'deb.example'"])
    assert hint(["executor failed running [x]: exit code: 100"]) == " with exit code 100"
    assert hint(["something else"]) == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_there_is_a_line_a_step_and_no_escape() -> None:
    out = io.StringIO()
    progress = Progress(out)
    progress.begin("openmpi")
    progress.step("openmpi", Step("ssh", "running"))
    progress.step("openmpi", Step("ssh", "done", 3.21))
    progress.step("openmpi", Step("ssh: COPY a b", "done", 1))
    progress.end("openmpi", "done")
    first, second = out.getvalue().splitlines()
    assert first == "openmpi: ssh 3.2 s"
    assert second.startswith("openmpi: done (")


def test_on_a_terminal_the_lines_of_running_builds_are_drawn_again() -> None:
    out = Terminal()
    progress = Progress(out)
    progress.begin("openmpi")
    progress.begin("mpich")
    progress.step("mpich", Step("ssh", "running"))
    assert out.getvalue().count("\x1b[2A\x1b[J") == 1
    progress.end("openmpi", "done")
    progress.end("mpich", "done")
    assert out.getvalue().endswith("s)\n")


def test_elapsed_time_is_of_each_build(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    progress = Progress(out)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress.begin("openmpi")
    monkeypatch.setattr(time, "monotonic", lambda: now + 12.34)
    progress.end("openmpi", "done")
    assert out.getvalue() == "openmpi: done (12.3 s)\n"
