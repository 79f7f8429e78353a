"""The log sink: each batch once, through any crashes and with other writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fault_runs.published_rows import read_log_rows
from millstream.errors import SinkError
from millstream.log.writer import Entry, LogWriter
from millstream.sinks import log_sink
from millstream.sinks.columns import EVENT_COLUMNS
from millstream.sinks.log_sink import LogSink


def rows(*keys: str) -> list[dict[str, Any]]:
    return [{"ts": 1, "key": key, "value": None} for key in keys]


def publish(path: Path, query: str, batch: int, *keys: str) -> None:
    """As a driver that starts, publishes a batch and ends."""
    sink = LogSink(path, query, EVENT_COLUMNS)
    sink.publish(batch, rows(*keys))
    sink.close()


def keys_of(path: Path) -> str:
    return "".join(row["key"] for row in read_log_rows(path))


def test_a_repeat_adds_nothing(tmp_path: Path) -> None:
    """By the same sink, and by one that is opened after a crash; the next batch is added."""
    sink = LogSink(tmp_path / "log", "q", EVENT_COLUMNS)
    for _ in range(2):
        sink.publish(3, rows("a", "b"))
    sink.close()
    publish(tmp_path / "log", "q", 3, "a", "b")
    publish(tmp_path / "log", "q", 4, "c")
    assert keys_of(tmp_path / "log") == "abc"


def test_a_large_batch_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the parts of a batch: the repeat adds only what is missing."""
    monkeypatch.setattr(log_sink, "BLOCK_BYTES", 1)
    append = LogWriter.append

    def crash(writer: LogWriter, entries: Any) -> Any:
        if entries[0].tag == "q:0:2":
            raise KeyboardInterrupt
        return append(writer, entries)

    with monkeypatch.context() as patch:
        patch.setattr(LogWriter, "append", crash)
        sink = LogSink(tmp_path / "log", "q", EVENT_COLUMNS)
        with pytest.raises(KeyboardInterrupt):
            sink.publish(0, rows("a", "b", "c", "d"))
        sink.close()
    assert keys_of(tmp_path / "log") == "ab"
    publish(tmp_path / "log", "q", 0, "a", "b", "c", "d")
    assert keys_of(tmp_path / "log") == "abcd"


@pytest.mark.parametrize("tag", ["other:9:0", "a client's key", ""])
def test_what_others_append_does_not_hide_a_batch(tmp_path: Path, tag: str) -> None:
    """Another application, or a server, has written to the log since, into a new segment too: a
    batch that is published again is still known."""
    path = tmp_path / "log"
    publish(path, "q", 7, "a")
    writer = LogWriter(path, segment_bytes=1)
    writer.append([Entry.of([b'{"ts":1,"key":"x","value":null}'], tag)])
    writer.close()
    publish(path, "q", 7, "a")
    publish(path, "q", 8, "b")
    assert keys_of(path) == "axb"


def test_a_log_that_failed_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file where its folder must be, and between two parts of a batch: SinkError each time; once
    it is gone, the log gets what it does not have yet."""
    monkeypatch.setattr(log_sink, "BLOCK_BYTES", 1)
    place, aside = tmp_path / "log", tmp_path / "aside"
    append = LogWriter.append

    def broken(writer: LogWriter, entries: Any) -> Any:
        if entries[0].tag == "q:1:1" and not aside.exists():
            place.rename(aside)
            place.write_text("in the way")
        return append(writer, entries)

    monkeypatch.setattr(LogWriter, "append", broken)
    sink = LogSink(place, "q", EVENT_COLUMNS)
    sink.publish(0, rows("a"))
    for _ in range(2):
        with pytest.raises(SinkError, match=f"sink {place}: batch 1 cannot be written"):
            sink.publish(1, rows("b", "c"))
    place.unlink()
    aside.rename(place)
    (tmp_path / "aside").mkdir()
    sink.publish(1, rows("b", "c"))
    sink.close()
    assert keys_of(place) == "abc"
