"""The five systems on the real node: the commands of their users, and the table of the promises to them.

A test names the promise that it tests, with the words of promises.toml. A test may have several marks, and a promise
several tests:

    @pytest.mark.promise("E: no failing launcher while the workers come up")
    def test_...(shell: Shell, loaded: Callable[[str], str]) -> None:
        shell("kubectl create -f - -n $NAMESPACE", given=manifest)
        shell.ended("mpijob-name")

Fixtures: `shell` runs commands in a namespace with an operator (one a module), and empties the namespace in the end;
`bare_shell` does so without an operator. `jobs`, `loaded` and `foreign` are those of tests/e2e. A module's tuple
OPERATOR_FLAGS adds flags to its operator. `make systems` runs all tests and prints the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import foreign, installed, jobs, loaded, operator, space
from tests.systems.promises import all_shown, load, table
from tests.systems.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.fixtures import Cluster

    from tests.e2e.conftest import Operator
    from tests.systems.promises import Outcome

__all__ = ["foreign", "installed", "jobs", "loaded", "operator", "space"]

PROMISE = "promise"  # the mark, and the property of a report that carries it from xdist's workers


@pytest.fixture
def shell(cluster: Cluster, space: str, operator: Operator, tmp_path: Path) -> Iterator[Shell]:
    """A user's shell in the operator's namespace, with kubectl and mpiboot. $NAMESPACE is kubectl's default, too."""
    assert operator.process is not None
    assert operator.process.poll() is None, operator.log.read_text()
    shell = Shell(cluster, space, tmp_path)
    yield shell
    shell.leave()


@pytest.fixture
def bare_shell(cluster: Cluster, namespace: str, tmp_path: Path) -> Shell:
    """A user's shell in a new namespace without an operator."""
    return Shell(cluster, namespace, tmp_path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-promise", action="store_true", help="fail unless each promise is shown by its tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{PROMISE}(text): what this test shows, by the words of promises.toml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A mark that names no promise stops the run: otherwise its row would stay empty without a reason."""
    promises = load()
    for item in items:
        for mark in item.iter_markers(PROMISE):
            try:
                item.user_properties.append((PROMISE, promises.named(*mark.args).id))
            except LookupError as error:
                raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("the five systems")
    for line in table(load(), outcomes(terminalreporter)):
        terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With --every-promise, a row that is not shown is a failure, though no test failed."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal and exitstatus == pytest.ExitCode.OK and session.config.getoption("--every-promise", default=False):
        session.exitstatus = exitstatus if all_shown(load(), outcomes(terminal)) else pytest.ExitCode.TESTS_FAILED


def outcomes(terminal: pytest.TerminalReporter) -> dict[str, dict[str, Outcome]]:
    """By promise and test, the worst outcome of the test's set-up, call and teardown."""
    found: dict[str, dict[str, Outcome]] = {}
    worst = {"failed": 2, "skipped": 1, "passed": 0}
    for reports in list(terminal.stats.values()):
        for report in reports:
            if isinstance(report, pytest.TestReport):
                for promise in (value for name, value in report.user_properties if name == PROMISE):
                    tests = found.setdefault(str(promise), {})
                    before = tests.get(report.nodeid, "passed")
                    tests[report.nodeid] = max(before, report.outcome, key=lambda outcome: worst[outcome])
    return found
