"""A file with a wrong time hours ahead: it is set aside, and nothing after it is late."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_runs.harness import kept_rows
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.driver.in_process import run
from millstream.driver.inputs import jump_filter
from millstream.driver.inputs.jump_filter import without_jumps
from millstream.model.source import Source, declared
from millstream.settings.settings import Settings
from millstream.sources.formats import InputSplit
from millstream.sources.json_lines import JsonLines
from millstream.sources.named_format import format_named

NOON = 1_700_000_000
HOUR = 3_600


def app_of(**said: Any) -> ms.App:
    app = ms.App("hourly", order="event-time")
    app.source("lines", ts="t", unit="s", **said)

    @app.update("lines")
    def count(event: Any, slate: Any) -> None:
        slate["count"] = slate.get("count", 0) + 1

    return app


def written(folder: Path, form: str, records: list[dict[str, int]]) -> None:
    folder.mkdir()
    match form:
        case "json":
            (folder / "a").write_text("".join(json.dumps(one) + "\n" for one in records))
        case "csv":
            with (folder / "a").open("w", newline="") as file:
                csv.DictWriter(file, ["t", "n"]).writerows([{"t": "t", "n": "n"}, *records])
        case "parquet":
            pq.write_table(pa.Table.from_pylist(records), folder / "a", row_group_size=7)
        case "text":
            (folder / "a").write_text("".join(f"{one['t']} {one['n']}\n" for one in records))


@pytest.mark.parametrize("form", ["json", "csv", "parquet", "text"])
@pytest.mark.parametrize("batch_bytes", [60, 1 << 20])
def test_one_wrong_time_costs_one_record(tmp_path: Path, form: str, batch_bytes: int) -> None:
    """In every format, and however small the batches are; it is a dead letter with its line."""
    records = [{"t": NOON + n, "n": n} for n in range(200)]
    records[50]["t"] += 5 * HOUR
    written(tmp_path / "in", form, records)
    said = {"pattern": r"(?P<t>\d+) (?P<n>\d+)"} if form == "text" else {}
    settings = Settings.of(
        "hourly",
        tmp_path / "store",
        {"lines": f"{form}:{tmp_path / 'in'}"},
        available_now=True,
        final=True,
        shards=2,
        batch_bytes=batch_bytes,
        lane="shuffled",
    )
    summary = run(app_of(jump="1h", **said), settings)
    assert (summary.late, summary.dead_letters) == (0, 1)
    (letter,) = kept_rows(settings.storage.store, "deadletters")
    assert letter["line"] == (52 if form == "csv" else 51)
    assert (
        "ts must be no more than 1h (jump=) after those of the records around it" in letter["error"]
    )


def test_without_it_the_records_after_are_late(tmp_path: Path) -> None:
    """So that the test above tests something."""
    records = [{"t": NOON + n, "n": n} for n in range(200)]
    records[50]["t"] += 5 * HOUR
    written(tmp_path / "in", "json", records)
    address = {"lines": f"json:{tmp_path / 'in'}"}
    settings = Settings.of(
        "hourly", tmp_path / "store", address, available_now=True, shards=2, batch_bytes=60
    )
    assert run(app_of(), settings).late > 100


@settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    times=st.lists(st.integers(0, 4).map(lambda n: NOON + n * HOUR) | st.none(), max_size=40),
    cuts=st.sets(st.integers(1, 400)),
)
def test_any_cut_gives_the_same(tmp_path: Path, times: list[int | None], cuts: set[int]) -> None:
    """The result is the same wherever a file is cut, also if the look back is too short at
    first."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"t": t, "n": n}) + "\n" for n, t in enumerate(times)))
    size = path.stat().st_size
    edges = [0, *sorted(cut for cut in cuts if cut < size), size]
    source = declared("lines", ts="t", unit="s", jump="1h")

    def outcome(splits: list[InputSplit]) -> tuple[list[Any], list[int]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(JsonLines, "look_back", 3)
            chunks = [
                chunk
                for split in splits
                for chunk in without_jumps(format_named("json"), split, source, 0)
            ]
        records = [(c.line_of(i), one["n"]) for c in chunks for i, one in enumerate(c.records)]
        return records, [bad.line for chunk in chunks for bad in chunk.bad]

    pieces = [InputSplit(str(path), low, high) for low, high in pairwise(edges)]
    whole = outcome([InputSplit(str(path), 0, size)])
    assert outcome(pieces) == whole
    assert sorted([*(line for line, _ in whole[0]), *whole[1]]) == list(range(1, len(times) + 1))


def test_the_reference_sets_the_same_aside() -> None:
    """The meaning of a text does not depend on the reader."""
    app = app_of(jump="1h", pattern=r"(?P<t>\d+)")
    times = [NOON + n for n in range(20)]
    times[5] += 5 * HOUR
    result = ms.testing.run(app).feed_text("lines", "\n".join(map(str, times)))
    assert [letter.line for letter in result.dead_letters] == [6]
    assert len(result.stream("lines")) == 19


def test_chunks_are_judged_across_their_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The neighbours of a record may be in other chunks."""
    monkeypatch.setattr("millstream.sources.line_blocks.BLOCK_BYTES", 30)
    path = tmp_path / "a.jsonl"
    times = [NOON + n for n in range(100)]
    for at in (0, 33, 34, 70):
        times[at] += 5 * HOUR
    path.write_text("".join(json.dumps({"t": t}) + "\n" for t in times))
    source: Source = declared("lines", ts="t", unit="s", jump="1h")
    chunks = list(without_jumps(format_named("json"), InputSplit(str(path), 0, None), source, 0))
    assert len(chunks) > 10
    assert [bad.line for chunk in chunks for bad in chunk.bad] == [1, 34, 35, 71]
    assert jump_filter.NEIGHBOURS == 8
