"""What tests need from the machine, as fixtures: if it is missing, a test is skipped with a remedy, or fails in CI."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.order import Recorder, Together, longest_first, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker
    from xdist.remote import Producer

REPOSITORY = Path(__file__).resolve().parent.parent
# The fixtures of the test cluster are in the folder of the code that builds and starts it.
sys.path.insert(0, str(REPOSITORY / "tools"))
pytest_plugins = ["cluster.fixtures"]
# MPIBOOT_ENGINE chooses what is tested. The commands under test must not see it, because most users do not set it. The
# processes that pytest starts get it under another name.
if forced := os.environ.pop("MPIBOOT_ENGINE", ""):
    os.environ["MPIBOOT_TEST_ENGINE"] = forced
# A shell that runs `make test &` makes it ignore SIGINT, and nohup makes it ignore SIGHUP. The programs under test
# would inherit that, and tests end them by these signals.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
# What jobs keep is not mixed with the user's own.
os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir(), f"mpiboot-test-state-{os.getuid()}"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpiboot"


def missing(what: str, how: str) -> NoReturn:
    """Skip the test, and name what it needs and how to get it. In CI the test fails instead."""
    text = f"needs {what}; get it with: {how}"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[docker.DockerClient]:
    """A client of a running Docker engine."""
    from mpiboot.containers.client import connect
    from mpiboot.containers.endpoint import NoEngineError

    if (forced := os.environ.get("MPIBOOT_TEST_ENGINE", "docker")) != "docker":
        missing(f"a Docker engine (MPIBOOT_ENGINE={forced} forbids it)", "unset MPIBOOT_ENGINE")
    try:
        client = connect()
    except NoEngineError as error:
        missing(f"a Docker engine ({error})", "make engine")
    yield client
    client.close()


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """The path of a program of this machine, by name."""

    def find(name: str) -> str:
        path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        return path or missing(f"the program {name}", "make setup")

    return find


@pytest.fixture(scope="session")
def mpiboot() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line as a user does: `mpiboot("images", "list")`; never raises for an exit code."""

    def run(*argv: str, timeout: float = 120, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mpiboot", *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload,no-any-return]

    return run


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """As `mpiboot`, but in this process: for commands that only read their input and print, in many tests."""
    from mpiboot.cli.main import main

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        code = main([*argv])
        return subprocess.CompletedProcess(argv, code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def image(docker_engine: docker.DockerClient) -> Callable[[str], str]:
    """The tag of one of our images, built if it is not there: `image("openmpi")`."""

    def get(name: str) -> str:
        tag = f"mpiboot/{name}:latest"
        if not docker_engine.images.list(tag):
            missing(f"the image {tag}", f"make images NAMES={name}")
        return tag

    return get


@pytest.fixture(scope="session")
def optional_image(docker_engine: docker.DockerClient) -> Callable[[str], str]:
    """The tag of an image that is built only when named. Without it the tests are skipped, in CI as well."""

    def get(name: str) -> str:
        tag = f"mpiboot/{name}:latest"
        if not docker_engine.images.list(tag):
            pytest.skip(f"needs the image {tag}, which is built only when named; get it with: make images NAMES={name}")
        return tag

    return get


@pytest.fixture(scope="session")
def runtime() -> Callable[[str], Path]:
    """The bin directory of an MPI runtime outside containers: `runtime("openmpi" | "mpich" | "intel")`."""

    def get(name: str) -> Path:
        directory = CACHE / "runtimes" / name / "bin"
        if not (directory / "mpirun").exists():
            missing(f"the MPI runtime {name}", "make runtimes")
        return directory

    return get


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together | None:
    return Together(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.json, which orders files")


def pytest_configure(config: pytest.Config) -> None:
    # Only in the first process, which gets the reports of the others.
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest_first(items, recorded())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print at the end which tests did not run, by part of the product, with the command that changes it."""
    skipped = terminalreporter.stats.get("skipped", [])
    groups: dict[tuple[str, str], int] = {}
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        part = "/".join(report.nodeid.split("/")[:2])
        key = (part, reason.removeprefix("Skipped: "))
        groups[key] = groups.get(key, 0) + 1
    ran = sum(len(terminalreporter.stats.get(outcome, [])) for outcome in ("passed", "failed"))
    if groups:
        terminalreporter.section("not tested on this machine")
        terminalreporter.line(f"{len(skipped)} of {len(skipped) + ran} tests did not run:")
        for (part, reason), count in sorted(groups.items()):
            terminalreporter.line(f"  {part}: {count} ({reason})")
