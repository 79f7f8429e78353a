"""Event logs over every kind of place: writers at once, each a client of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from millstream.log.entries import Appended, Entry
from millstream.log.mirror import LogMirror
from millstream.log.place_writer import PlaceLogWriter
from millstream.log.reader import LogReader
from millstream.places.place import Place

WRITERS, APPENDS = 4, 12


def test_writers_at_once_lose_nothing_and_double_nothing(
    opened: Callable[[], Place], tmp_path: Path
) -> None:
    """Each appends lines of its own, and lines that all of them append under one tag; two mirrors
    have every line once, in the same order, under the numbers that were acknowledged."""

    def append(writer: int) -> dict[bytes, int]:
        log = PlaceLogWriter(opened(), "clicks")
        numbers: dict[bytes, int] = {}
        for number in range(APPENDS):
            own, shared = b"%d-%d" % (writer, number), b"all-%d" % number
            for line, tag in ((own, ""), (shared, f"tag-{number}")):
                (result,) = log.append([Entry.of([line], tag)])
                assert isinstance(result, Appended)
                numbers[line] = result.first
        log.close()
        return numbers

    with ThreadPoolExecutor(WRITERS) as pool:
        told = [*pool.map(append, range(WRITERS))]
    found = []
    for name in ("one", "two"):
        LogMirror(opened(), "clicks", tmp_path / name).close()
        reader = LogReader(tmp_path / name)
        blocks = reader.blocks(0, reader.end[0])
        found.append([line for block in blocks for line in block.lines])
        reader.close()
    assert found[0] == found[1]
    assert len(found[0]) == (WRITERS + 1) * APPENDS
    for numbers in told:
        assert all(found[0][number] == line for line, number in numbers.items())
