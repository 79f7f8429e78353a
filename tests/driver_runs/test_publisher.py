"""The output of several batches that is published at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fault_runs.published_rows import read_log_rows, read_rows
from millstream.codec import encode_value
from millstream.driver.outputs import publisher as module
from millstream.driver.outputs.publisher import Publisher
from millstream.driver.outputs.sink_retry import SinkRetry
from millstream.engine.progress import Report
from millstream.engine.sink_rows import SinkRows
from millstream.errors import StoreError
from millstream.log.retention import Retention
from millstream.sources.address import Address
from millstream.stores.home import Home, log_of

BATCHES = 4


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Publisher]:
    home = Home.make(tmp_path / "store", "a", 1, {})
    retry = SinkRetry(0.0, lambda _: True, lambda: 0, lambda _: None, lambda _: None)
    sinks = {"out": Address("json", str(tmp_path / "out"))}
    opened = Publisher(home, "query", sinks, Retention(), (), retry)
    yield opened
    opened.close()


def staged(publisher: Publisher) -> list[tuple[int, list[str]]]:
    """Batches of which each later one has earlier events, each row of a report apart."""
    return [
        (batch, publisher.stage(batch, [report(batch, 1), report(batch, 0)], synced=False))
        for batch in range(BATCHES)
    ]


def report(batch: int, number: int) -> Report:
    return Report(rows=SinkRows({"out": [(100 - 10 * batch + number, "k", encode_value(batch))]}))


@pytest.mark.parametrize("size", [1, 150, 1 << 20])
def test_batches_come_in_order_and_once(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """However many batches are published together, they come in order, and within each in content
    order. Publishing again, as after a crash, repeats nothing."""
    monkeypatch.setattr(module, "TOGETHER_BYTES", size)
    wanted = [100 - 10 * batch + number for batch in range(BATCHES) for number in (0, 1)]
    for _ in range(2):
        publisher.publish_all(staged(publisher))
        assert [row["ts"] for row in read_rows(str(tmp_path / "out"))] == wanted
        assert [row["ts"] for row in read_log_rows(log_of(tmp_path / "store", "out"))] == wanted
        assert list((tmp_path / "store" / "staging").iterdir()) == []


def test_what_is_being_cleared_has_been_published(publisher: Publisher, tmp_path: Path) -> None:
    """At a start, if a file of the batches is gone, all of them were published, and the rest only
    goes."""
    batches = staged(publisher)
    (tmp_path / "store" / "staging" / batches[2][1][0]).unlink()
    publisher.publish_all(batches, again=True)
    assert list(read_rows(str(tmp_path / "out"))) == []
    assert list((tmp_path / "store" / "staging").iterdir()) == []


def test_staged_output_that_is_gone_is_said(publisher: Publisher, tmp_path: Path) -> None:
    """While the application runs, nobody else removes what it has staged: the error names it."""
    batches = staged(publisher)
    gone = tmp_path / "store" / "staging" / batches[2][1][0]
    gone.unlink()
    with pytest.raises(StoreError, match=rf"{gone.name}: is missing, .* was not published"):
        publisher.publish_all(batches)
