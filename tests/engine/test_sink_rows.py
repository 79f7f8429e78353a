"""Staged output of this version and of the one before."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

from millstream.durable import with_checksum
from millstream.engine.sink_rows import SinkRows, read_staged
from millstream.errors import StoreError
from millstream.model.rules import DeadLetter
from millstream.slate_changes import SlateChanges

ROWS = SinkRows(
    outputs={"out": [(1, "k", b"{}")]},
    late_events=[("in", 2, "l", b"1")],
    letters=[DeadLetter("f", "in", 3, "k", b"1", "ValueError: no", batch=7)],
    dropped_events=[("f", "in", 4, "m", b"2")],
    slate_changes={"changes": SlateChanges()},
)
NEW_FIELDS = ("form", "attributes")
"""Fields of a dead letter that former versions did not have."""


@pytest.mark.parametrize("places", [50, 45, 44, 26])
def test_what_a_former_version_staged_is_read(tmp_path: Path, places: int) -> None:
    """It staged a whole report, as a list that grew with each version: changes came late."""
    report: list[object] = [{}, {}, None, 0, 0, {}, 0, None, None, None, 0, None]
    letters = [
        {name: value for name, value in asdict(letter).items() if name not in NEW_FIELDS}
        for letter in ROWS.letters
    ]
    report += [ROWS.outputs, ROWS.late_events, letters, ["a.rows"], 9, *[{}] * 8]
    report += [ROWS.dropped_events, *[{}] * 18, ROWS.slate_changes, *[{}] * 5]
    path = tmp_path / "000000000007-driver.rows"
    path.write_bytes(with_checksum(msgspec.msgpack.encode(report[:places])))
    rows = read_staged(path)
    assert (rows.outputs, rows.late_events, rows.letters) == (
        *(ROWS.outputs, ROWS.late_events),
        ROWS.letters,
    )
    assert rows.dropped_events == ROWS.dropped_events
    assert rows.slate_changes.keys() == (ROWS.slate_changes.keys() if places > 44 else set())


def test_staged_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    """All kinds, and none; something else is refused with the batch that it was staged for."""
    path = tmp_path / "000000000007-driver.rows"
    for rows in (ROWS, SinkRows()):
        path.write_bytes(with_checksum(msgspec.msgpack.encode(rows)))
        assert msgspec.to_builtins(read_staged(path)) == msgspec.to_builtins(rows)
    path.write_bytes(with_checksum(msgspec.msgpack.encode("rows")))
    with pytest.raises(StoreError, match="staged output of batch 7 cannot be read"):
        read_staged(path)
