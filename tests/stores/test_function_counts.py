"""The counts of functions: how they merge, and how those of an earlier store are read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from millstream.durable import write_record
from millstream.places.memory_place import MemoryPlace
from millstream.stores.function_counts import (
    LARGE_BATCHES,
    FunctionCounts,
    Large,
    Unranked,
    merged,
)
from millstream.stores.home import Facts
from millstream.stores.progress import (
    BatchTiming,
    Latency,
    PendingWork,
    Progress,
    SourceProgress,
    decoded,
)
from millstream.stores.shared.commit_record import (
    CommitRecord,
    decode_commit,
    encode_commit,
    state_of,
)
from millstream.stores.shared.manifest import ShardManifest
from millstream.stores.shared.shared_home import SharedHome
from millstream.stores.soft import FLUSHED, read_flushed

SUMS = [
    field.name
    for field in msgspec.structs.fields(FunctionCounts)
    if field.name not in ("reach", "large", "unranked")
]


@pytest.mark.parametrize("field", SUMS)
def test_every_count_is_a_sum(field: str) -> None:
    """Of all tasks so far: 2 before, 3 and 4 in the reports are 9. Feedback is of one batch."""
    before, reports = {"f": FunctionCounts()}, [{"f": FunctionCounts()} for _ in range(2)]
    for counts, number in zip((before, *reports), (2, 3, 4), strict=True):
        setattr(counts["f"], field, number)
    after = merged(before, reports, 1)
    assert getattr(after["f"], field) == (7 if field == "feedback" else 9)
    assert getattr(before["f"], field) == 2, "the progress before is as it was"


def test_the_largest_slate_and_the_last_error_stay() -> None:
    """The longest reach, the largest slate until it has not been seen for long, all failures."""
    failed = Unranked(2, "a", "", 1)
    before = {"f": FunctionCounts(reach=5, large=Large("a", 9, 1), unranked=failed)}
    more = FunctionCounts(reach=3, large=Large("b", 8, 2), unranked=Unranked(1, "b", "E", 2))
    after = merged(before, [{"f": more}], 2)["f"]
    assert after == FunctionCounts(
        reach=5, large=Large("a", 9, 1), unranked=Unranked(3, "b", "E", 2)
    )
    smaller = FunctionCounts(large=Large("a", 7, 2))
    assert merged(before, [{"f": smaller}], 2)["f"].large == Large("a", 7, 2)
    assert merged(before, [{}], 1 + LARGE_BATCHES)["f"].large is None


EARLIER = """{"batch":7,"clock":70,"horizon":60,"highest":65,
 "sources":{"in":{"highest":65,"clock":70,"position":[3,4],"events":40,"lost":1,"record_bytes":9.5}},
 "waiting":3,"least_waiting":61,"least_timer":62,"least_wall":90,"feedback":1,"least_feedback":63,
 "events":40,"late":2,"dead_letters":5,"processed":{"tidy":39,"count":30},"query":"q",
 "staged":["a.rows"],"unpublished":[[7,["a.rows"]]],"last_batches":[7,6],"soft":"","emitted":{"in":38},
 "spent":{"tidy":11,"count":23},"waiting_at":{"count":3},"slates":{"count":9},"failed":{"count":4},
 "large":{"count":["k",2000,6]},"seconds":1.5,"last_seconds":0.25,
 "measured":{"batch":7,"whole":20,"waited":10},"arrivals":[[7,50,71,65]],"written":71,
 "taken":{"count":40,"tidy":40},"dropped":{"count":1},"diverted":{"count":1},"late_at":{"count":2},
 "refused":{"in":1},"refused_at":{"tidy":1},"timers_failed":{"count":1},"feedback_at":{"count":1},
 "held":2,"pressure":0.5,"hold":64,"costs":{"count":0.75},"intake":4096,"swept":{"count":2},
 "evicted":{"count":3},"unranked":{"count":[1,"k","KeyError",5]},"pace":0.125,
 "stored":{"count":6},"reach":{"count":12},"final":null,"ended":{"at":50,"events":38},
 "retried":{"count":1},"folder":""}"""
"""The record of a store of format 3."""


def check(progress: Progress) -> None:
    """It says what the earlier record says."""
    assert progress.functions == {
        "tidy": FunctionCounts(taken=40, processed=39, refused=1, spent=11),
        "count": FunctionCounts(
            taken=40,
            retried=1,
            processed=30,
            dropped=1,
            diverted=1,
            late=2,
            failed=4,
            timers_failed=1,
            waiting=3,
            feedback=1,
            spent=23,
            stored=6,
            slates=9,
            swept=2,
            evicted=3,
            reach=12,
            large=Large("k", 2000, 6),
            unranked=Unranked(1, "k", "KeyError", 5),
        ),
    }
    assert (progress.batch, progress.clock, progress.events) == (7, 70, 40)
    assert (progress.late, progress.waiting, progress.dead_letters) == (2, 3, 5)
    assert progress.unpublished == [(7, ["a.rows"])]
    assert progress.last_batches == [7, 6]
    assert progress.measured == Latency(7, 20, 10)
    assert progress.sources == {"in": SourceProgress(65, 70, [3, 4], 40, 1, 9.5, refused=1)}
    assert progress.pending == PendingWork(61, 62, 90, 1, 63, 2, 0.5, 64)
    assert progress.timing == BatchTiming(1.5, 0.25, 4096, 0.125, {"count": 0.75})


def test_a_progress_of_an_earlier_format_is_read(tmp_path: Path) -> None:
    """Each of its counts by function is now one of the function; so is that of the last flush."""
    progress = decoded(EARLIER.encode())
    check(progress)
    assert decoded(msgspec.json.encode(progress)) == progress
    write_record(tmp_path / FLUSHED, b'{"progress":' + EARLIER.encode() + b',"ended":true}')
    flushed = read_flushed(tmp_path)
    assert flushed.ended
    check(flushed.progress)


def test_a_progress_without_functions_is_read_as_it_is() -> None:
    """One of today that has no function to count for is not taken for an earlier one."""
    progress = Progress(batch=3, emitted={"in": 5}, events=5)
    assert decoded(msgspec.json.encode(progress)) == progress
    assert decoded(None) == Progress()


def test_a_commit_of_an_earlier_format_is_read(tmp_path: Path) -> None:
    """The commits of a shared store hold the same record."""
    commit = CommitRecord(
        **{"batch": 7, "epoch": 1, "id": "x", "written": 71, "host": "h", "manifest_at": 7},
        **{"progress": EARLIER.encode(), "manifest": ShardManifest(), "facts": b"{}"},
    )
    state = state_of(decode_commit(encode_commit(commit)))
    home = SharedHome(MemoryPlace(), tmp_path, Facts("retail", 1, {}, format=4), state)
    check(home.committed_progress())
