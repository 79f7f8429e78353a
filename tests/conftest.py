"""What every test shares: the Hypothesis profiles, the Spark context, the count of generated cases.

Three processes share the tests (many wait for something): all that need Spark are in one, with one
context; of the others, a module stays together.

HYPOTHESIS_PROFILE=ci      the default: the same cases in every run
HYPOTHESIS_PROFILE=deep    ten times as many, and others each time
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import case_counter
import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("deep", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is to run in one process. Those with Spark take the longest, and begin at once."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
    for item in items:
        group = "spark" if item.get_closest_marker("spark") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over all that five thousand tests have brought in."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A process has ended: count its cases."""
    case_counter.add_counted(getattr(node, "workeroutput", {}).get("cases", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failed run: what is not run is not held."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cases"] = case_counter.counted()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many generated cases were compared."""
    for line in case_counter.summary():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One SparkContext for all tests that need one."""
    os.environ["MILLSTREAM_TRACE"] = str(tmp_path_factory.mktemp("trace") / "points")
    from millstream.spark.context import close_context, open_context

    context = open_context("tests", "local[2]", "1g")
    yield context
    close_context(context)
