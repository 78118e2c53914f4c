"""The five systems on the real node: what their users type, and the table of what was promised to them.

A test names what it shows, by the words of promises.toml; several marks are fine, several tests of one promise too:

    @pytest.mark.promise("E: no failing launcher while the workers come up")
    def test_...(shell: Shell, loaded: Callable[[str], str]) -> None:
        shell("kubectl create -f - -n $NAMESPACE", given=manifest)
        shell.ended("mpijob-name")

Fixtures: `shell` types commands in a namespace that an operator of its own looks after (one a module), and leaves that
namespace empty; `bare_shell` does so where there is no operator. `jobs`, `loaded` and `foreign` are those of tests/e2e.
A module's OPERATOR_FLAGS, a tuple, are more flags for its operator. `make systems` runs all and prints the table.
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
    """A user's shell where our operator works: kubectl and mpiboot are there, $NAMESPACE is kubectl's own as well."""
    assert operator.process is not None
    assert operator.process.poll() is None, operator.log.read_text()
    shell = Shell(cluster, space, tmp_path)
    yield shell
    shell.leave()


@pytest.fixture
def bare_shell(cluster: Cluster, namespace: str, tmp_path: Path) -> Shell:
    """A user's shell in a namespace of its own that no operator looks after."""
    return Shell(cluster, namespace, tmp_path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-promise", action="store_true", help="fail unless each promise is shown by its tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{PROMISE}(text): what this test shows, by the words of promises.toml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A mark that names no promise stops everything: its row would stay empty without anybody knowing why."""
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
    """By promise and test, the worst that a test's set-up, call and end had to say."""
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
