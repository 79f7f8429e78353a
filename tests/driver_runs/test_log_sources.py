"""Event logs as sources of a run: each record once, and never one that the run itself wrote."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import kept_rows

import millstream as ms
from millstream.driver.in_process import run
from millstream.errors import InputError, LogError, StoreError
from millstream.log.readers import least_committed
from millstream.log.segments import encode_end
from millstream.log.writer import Entry, LogWriter
from millstream.settings.settings import Settings
from millstream.stores.home import log_of
from millstream.stores.reader import SlateReader


def counting(*sources: str, outputs: tuple[str, ...] = ()) -> ms.App:
    app = ms.App("counting")
    for source in sources:
        app.source(source, key="word")
    for output in outputs:
        app.output(output)

    @app.update(*sources)
    def count(event: Any, slate: Any) -> None:
        slate[event.stream] = slate.get(event.stream, 0) + 1

    return app


def settings(store: Path, sources: dict[str, str], **more: Any) -> Settings:
    given = {"available_now": True, "shards": 2, **more}
    return Settings.of("counting", store, sources, given.pop("sinks", {}), **given)


def append(path: Path, *words: str) -> list[int]:
    """Appends a block, and returns the position behind it."""
    writer = LogWriter(path)
    writer.append([Entry.of([json.dumps({"word": word}).encode() for word in words])])
    writer.close()
    return writer_end(path)


def writer_end(path: Path) -> list[int]:
    writer = LogWriter(path)
    end = writer.end
    writer.close()
    return end


def counts(store: Path) -> dict[str, Any]:
    with SlateReader(store) as reader:
        return {slate.key: slate.value for slate in reader.scan("count")}


def test_a_source_that_is_an_output_too_is_not_written_to(tmp_path: Path) -> None:
    """Its records lie in its log already: nothing is added there, and nothing is counted twice."""
    store = tmp_path / "store"
    append(log_of(store, "words"), "a", "b", "a")
    app = counting("words", outputs=("words",))
    sinks = {"words": f"json:{tmp_path / 'copy'}"}
    for _ in range(2):
        run(app, settings(store, {"words": "log"}, sinks=sinks))
        assert counts(store) == {"a": {"words": 2}, "b": {"words": 1}}
    assert writer_end(log_of(store, "words"))[1] == 3
    copied = [line for path in (tmp_path / "copy").glob("*.jsonl") for line in path.open()]
    assert len(copied) == 3


@pytest.mark.parametrize("stream", ["loud", "late", "deadletters"])
def test_a_source_must_not_read_the_log_of_an_output(tmp_path: Path, stream: str) -> None:
    """The run would read its own output as events. It is refused before Spark starts."""
    store = tmp_path / "store"
    app = counting("words", outputs=("words",))
    app.output("loud")
    app.map("words", publishes="loud", name="shout")(lambda event: [ms.emit()])
    address = f"log:{log_of(store, stream)}"
    with pytest.raises(InputError, match=f"{stream}.* writes to the log that the source reads"):
        run(app, settings(store, {"words": address}))


def test_after_a_power_cut_all_that_is_on_disk_is_taken(tmp_path: Path) -> None:
    """`end` may be older than the blocks then, and no writer may come: a run sees the blocks."""
    store = tmp_path / "store"
    log = log_of(store, "words")
    before = append(log, "a")
    append(log, "b")
    (log / "end").write_bytes(encode_end(*before))
    run(counting("words"), settings(store, {"words": "log"}))
    assert counts(store) == {"a": {"words": 1}, "b": {"words": 1}}


def test_two_sources_of_one_log_are_two_readers(tmp_path: Path) -> None:
    """Retention waits for the one that is behind."""
    store, log = tmp_path / "store", tmp_path / "shared"
    address = f"log:{log}"
    first = append(log, "a")
    run(counting("one"), settings(store, {"one": address}))
    assert least_committed(log) in (0, first[0])
    append(log, "b")
    sources = {"one": address, "two": address}
    run(counting("one", "two"), settings(store, sources, batch_bytes=100))
    assert len(list((log / "readers").glob("*.json"))) == 2
    assert counts(store) == {"a": {"one": 1, "two": 1}, "b": {"one": 1, "two": 1}}


@pytest.mark.parametrize("how", ["deleted", "another"])
def test_another_log_is_refused(tmp_path: Path, how: str) -> None:
    """A log that was deleted and created again, or another address, is noticed even if its blocks
    have the same sizes: the source's position has no meaning there."""
    store, log = tmp_path / "store", tmp_path / "first"
    for word in "ab":
        append(log, word)
    run(counting("words"), settings(store, {"words": f"log:{log}"}))
    if how == "deleted":
        shutil.rmtree(log)
    else:
        log = tmp_path / "second"
    for word in "cdef":
        append(log, word)
    for _ in range(2):
        with pytest.raises((LogError, StoreError), match="was the log replaced"):
            run(counting("words"), settings(store, {"words": f"log:{log}"}))
    assert counts(store) == {"a": {"words": 1}, "b": {"words": 1}}


def test_a_store_may_be_moved(tmp_path: Path) -> None:
    """Or copied, with its logs: it goes on where it was."""
    store = tmp_path / "store"
    append(log_of(store, "words"), "a")
    run(counting("words"), settings(store, {"words": "log"}))
    shutil.copytree(store, tmp_path / "moved")
    append(log_of(tmp_path / "moved", "words"), "b")
    run(counting("words"), settings(tmp_path / "moved", {"words": "log"}))
    assert counts(tmp_path / "moved") == {"a": {"words": 1}, "b": {"words": 1}}


def test_a_sink_may_name_the_streams_own_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However its path is written, it is the same log, and is written once."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    store = Path("..") / "store"
    append(log_of(store, "words"), "a")
    app = counting("words")
    app.output("loud")
    app.map("words", publishes="loud", name="shout")(shout)
    sinks = {"loud": f"log:{os.path.abspath(log_of(store, 'loud'))}"}
    run(app, settings(store, {"words": "log"}, sinks=sinks))
    assert [row["key"] for row in kept_rows(store, "loud")] == ["a"]


def shout(event: Any) -> Any:
    yield ms.emit()
