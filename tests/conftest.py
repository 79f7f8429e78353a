"""Shared fixtures and hooks: the Hypothesis profiles, the Spark context, the count of generated
cases.

Three processes share the tests (many wait for something): all that need a Spark context are in one,
with one context; of the others, a module stays together. How many cases are generated:
`generated_cases`.

The tests start hundreds of short-lived processes. Where PYTHONDONTWRITEBYTECODE is set, each would
compile the project again, which takes longer than most of them run: so it is compiled before the
first, and the test modules keep what they were compiled to; so does Hypothesis, whose assertions
pytest rewrites.
"""

from __future__ import annotations

import compileall
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import case_counter
import pytest

from fault_runs.database_servers import (
    DatabaseServer,
    cassandra_server,
    postgres_server,
    running,
)
from fault_runs.kafka_server import KafkaBrokers, kafka_brokers

KEEPS_BYTECODE = not sys.dont_write_bytecode
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in a shell's background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else all child processes ignore it
sys.dont_write_bytecode = False  # of test modules; as it was after they are imported
from generated_cases import load_profile  # noqa: E402  only now: it brings Hypothesis

load_profile()
if "PYTEST_XDIST_WORKER" not in os.environ:
    for folder in ("src", "bench", "examples", "fault_runs", "docs"):
        compileall.compile_dir(Path(__file__).parent.parent / folder, quiet=2)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups tests that must run in one process. Those with Spark take the longest, and begin at
    once."""
    for item in items:
        group = str(item.path)
        if "spark" in getattr(item, "fixturenames", ()) or _runs_on_spark(item):
            item.add_marker(pytest.mark.spark)
            group = "spark"
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def _runs_on_spark(item: pytest.Item) -> bool:
    """True if a test of several runners has Spark's."""
    call = getattr(item, "callspec", None)
    return call is not None and any(
        isinstance(value, str) and value == "spark" for value in call.params.values()
    )


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBrokers]:
    """The Kafka broker of all tests in a process. Each test makes topics of its own."""
    with kafka_brokers(tmp_path_factory.mktemp("kafka") / "brokers") as brokers:
        yield brokers


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseServer]:
    """The PostgreSQL server of all tests in a process. Each test makes tables of its own."""
    with running(postgres_server(tmp_path_factory.mktemp("postgres") / "data")) as server:
        yield server


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseServer]:
    """The Cassandra node of all tests in a process. Each test makes tables of its own."""
    with running(cassandra_server(tmp_path_factory.mktemp("cassandra") / "data")) as server:
        yield server


def pytest_collection_finish(session: pytest.Session) -> None:
    """See that the groups hold, and keep the garbage collector from scanning all that was imported.

    Without groups every process starts a Spark of its own, and the suite takes three times as long;
    xdist 3.8 says nothing when it cannot name them, as under pytest 9.2.
    """
    if hasattr(session.config, "workerinput"):
        ungrouped = [item.nodeid for item in session.items if "@" not in item.nodeid]
        if ungrouped:
            raise pytest.UsageError(f"xdist has not grouped {ungrouped[0]}: pin pytest below 9.2")
    sys.dont_write_bytecode = not KEEPS_BYTECODE
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
    """The SparkContext of all tests that need one."""
    os.environ["MILLSTREAM_TRACE"] = str(tmp_path_factory.mktemp("trace") / "points")
    from millstream.spark.context import close_context, open_context

    context = open_context("tests", "local[2]", "1g")
    yield context
    close_context(context)
