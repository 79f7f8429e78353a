"""Pending records are exactly the records of the log that the last committed batch has not
processed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec
import pytest
from feeds.stored_feeds import SOURCE, T0, FeedStore, delete, follow, post

from millstream.feeds.reads.pending_records import Pending
from millstream.log.writer import Entry, LogWriter
from millstream.server.feeds import feed_log
from millstream.server.feeds.feed_log import FeedLog, FeedMoment
from millstream.server.feeds.feed_stamps import AHEAD
from millstream.server.open_store import OpenStore
from millstream.server.options import ServerOptions
from millstream.server.service import Service
from millstream.stores.shared.mirror_record import MirrorRecord, write_mirror

T = TypeVar("T")


@pytest.fixture
def made(tmp_path) -> FeedStore:
    return FeedStore(tmp_path / "store")


def followed(
    made: FeedStore,
    use: Callable[[FeedLog], Awaitable[T]],
    path: Path | None = None,
    clock: Callable[[], int] = lambda: T0 + 10**9,
) -> T:
    """Calls a function with the log of a store, and returns its result.

    `path`: the log, if it is elsewhere.
    """

    async def run() -> T:
        service = Service(ServerOptions(made.path), OpenStore(made.path), "", clock=clock)
        log = FeedLog(service, SOURCE, path or made.log)
        try:
            return await use(log)
        finally:
            log.close()
            await service.stop()

    return asyncio.run(run())


def ids(pending: Pending) -> set[str]:
    """The posts that are pending."""
    return {one for posts in pending.posts.values() for one in posts}


def test_records_past_the_batch_are_pending(made):
    """Before the first batch all are; then those that it did not take; then none."""

    async def use(log: FeedLog) -> list[tuple[int, set[str]]]:
        found = []
        for change in (
            lambda: made.append(post("bob", "1", 1), post("bob", "2", 2)),
            lambda: made.batch(),
            lambda: made.append(post("bob", "3", 3)),
            lambda: made.append(post("eve", "4", 4)),
            lambda: made.batch(most_bytes=1),
            lambda: made.batch(),
        ):
            change()
            moment = await log.now()
            assert moment.trouble is None
            found.append((moment.progress.batch, ids(moment.pending)))
        return found

    assert followed(made, use) == [
        (-1, {"1", "2"}),
        (0, set()),
        (0, {"3"}),
        (0, {"3", "4"}),
        (1, {"4"}),
        (2, set()),
    ]


def test_nothing_is_decoded_twice(made, monkeypatch):
    """This holds for any number of looks and of batches."""
    decoded = []
    monkeypatch.setattr(
        feed_log, "_decode", lambda line: decoded.append(line) or msgspec.json.decode(line)
    )

    async def use(log: FeedLog) -> None:
        for number in range(5):
            made.append(post("bob", f"{number}", number + 1), post("eve", f"{number}", number + 1))
            await log.now()
            await log.now()
            made.batch(most_bytes=1)
            await log.now()

    followed(made, use)
    assert len(decoded) == 10


def test_while_nothing_changes_it_is_the_same(made):
    """The same object is given, which nothing was done to."""

    async def use(log: FeedLog) -> tuple[FeedMoment, FeedMoment]:
        return await log.now(), await log.now()

    made.append(post("bob", "1"))
    first, second = followed(made, use)
    assert first.pending is second.pending
    assert ids(first.pending) == {"1"}


def test_what_a_thread_reads_is_not_changed(made):
    """Later records are in another object."""

    async def use(log: FeedLog) -> tuple[FeedMoment, FeedMoment]:
        made.append(post("bob", "1"))
        shared = await log.now(shared=True)
        made.append(post("bob", "2"), follow("ann", "bob"))
        return shared, await log.now()

    shared, later = followed(made, use)
    assert ids(shared.pending) == {"1"}
    assert shared.pending.follows == {}
    assert ids(later.pending) == {"1", "2"}


def test_a_record_that_will_be_refused_is_left_out(made):
    """An invalid record has no effect, and hides nothing."""
    made.append({"kind": "poste"}, 17, post("bob", "1"), {**post("bob", "2"), "at": "now"})

    async def use(log: FeedLog) -> FeedMoment:
        return await log.now()

    moment = followed(made, use)
    assert ids(moment.pending) == {"1"}
    assert moment.trouble is None


def test_an_append_is_seen_by_the_next_look(made):
    """Once the writer has returned, the next look sees the record, a hundred times."""

    async def use(log: FeedLog) -> None:
        writer = LogWriter(made.log)
        for number in range(100):
            writer.append([Entry.of([msgspec.json.encode(post("bob", f"{number}", number))])])
            assert f"{number}" in ids((await log.now()).pending)
        writer.close()

    followed(made, use)


def test_too_far_behind_is_said(made, monkeypatch):
    """The moment says how many records it does not have; when a batch has gone on it has them."""
    monkeypatch.setattr(feed_log, "MOST", 3)
    for number in range(5):
        made.append(post("bob", f"{number}", number))

    async def use(log: FeedLog) -> tuple[FeedMoment, FeedMoment]:
        before = await log.now()
        for _ in range(2):
            made.batch(most_bytes=1)
        return before, await log.now()

    before, after = followed(made, use)
    assert ids(before.pending) == {"0", "1", "2"}
    assert before.trouble is not None
    assert "5 records behind" in before.trouble
    assert "last 2 of them" in before.trouble
    assert ids(after.pending) == {"2", "3", "4"}
    assert after.trouble is None


def test_one_record_behind_is_said(made, monkeypatch):
    """The message for one record is in the singular."""
    monkeypatch.setattr(feed_log, "MOST", 0)
    made.append(post("bob", "0", 0))
    before = followed(made, lambda log: log.now())
    assert before.trouble is not None
    assert "is 1 record behind, and the last 1 of them is not shown yet" in before.trouble


def test_a_log_that_cannot_be_read_is_said(made):
    """And when it can be again, all is there."""
    made.append(post("bob", "1"))
    [segment] = [one for one in Path(made.log).iterdir() if one.suffix not in ("", ".json")]
    good = segment.read_bytes()

    async def use(log: FeedLog) -> tuple[FeedMoment, FeedMoment]:
        segment.write_bytes(good[:-4] + b"\0\0\0\0")
        broken = await log.now()
        segment.write_bytes(good)
        return broken, await log.now()

    broken, whole = followed(made, use)
    assert broken.trouble is not None
    assert "cannot be read" in broken.trouble
    assert whole.trouble is None
    assert ids(whole.pending) == {"1"}


def test_a_log_that_ends_before_what_was_taken_is_said(made):
    """The log was replaced by another, so the pending records are unknown."""
    made.append(post("bob", "1"), post("bob", "2"))
    made.batch()
    for file in Path(made.log).iterdir():
        file.unlink()

    async def use(log: FeedLog) -> FeedMoment:
        return await log.now()

    moment = followed(made, use)
    assert moment.trouble is not None
    assert "was the log replaced" in moment.trouble


class MirroredLog:
    """The log of a store as a mirror on another host has it: as of the last `update`."""

    def __init__(self, made: FeedStore, folder: Path) -> None:
        write_mirror(made.path, MirrorRecord(place="shared:elsewhere", store="", boot=""))
        self._log, self.path = Path(made.log), folder

    def update(self) -> None:
        shutil.copytree(self._log, self.path, dirs_exist_ok=True)


def test_a_mirror_behind_the_batch_is_no_error(made, tmp_path):
    """Nothing is pending until the log has come; listeners hear of all its records, in order."""
    mirrored = MirroredLog(made, tmp_path / "log")
    heard: list[str] = []

    async def use(log: FeedLog) -> list[set[str]]:
        made.append(post("bob", "1", 1))
        mirrored.update()
        found = []

        async def look() -> None:
            moment = await log.now()
            assert moment.trouble is None
            found.append(ids(moment.pending))

        await look()
        log.listeners.append(lambda records: heard.extend(one.id for one in records))
        made.append(post("bob", "2", 2))
        made.batch()
        await look()
        made.append(post("bob", "3", 3))
        mirrored.update()
        await look()
        return found

    assert followed(made, use, path=mirrored.path) == [{"1"}, set(), {"3"}]
    assert heard == ["2", "3"]


def test_a_mirror_that_stays_behind_is_said(made, tmp_path):
    """After a while the moment says that records may be missing, until the log has come."""
    mirrored = MirroredLog(made, tmp_path / "log")
    seconds = [0]

    async def use(log: FeedLog) -> list[str | None]:
        made.append(post("bob", "1", 1), post("bob", "2", 2))
        made.batch()
        troubles = [(await log.now()).trouble]
        seconds[0] += 60
        troubles.append((await log.now()).trouble)
        mirrored.update()
        troubles.append((await log.now()).trouble)
        return troubles

    clock = lambda: T0 + 10**9 + 1_000_000 * seconds[0]  # noqa: E731
    first, later, last = followed(made, use, path=mirrored.path, clock=clock)
    assert first is None
    assert later is not None
    assert "2 records behind the last batch" in later
    assert last is None


def test_listeners_hear_of_each_record_once(made):
    """In the order of the log, also of those that a batch took before anybody looked."""
    heard: list[str] = []

    async def use(log: FeedLog) -> None:
        await log.now()
        log.listeners.append(lambda records: heard.extend(one.id for one in records))
        made.append(post("bob", "1", 1), post("bob", "2", 2))
        made.batch()
        await log.now()
        made.append(delete("bob", "1", 3))
        await log.now()
        made.batch()
        await log.now()

    followed(made, use)
    assert heard == ["1", "2", "1"]


def test_stamps_begin_above_what_is_there(made):
    """Above the highest time in the log or in the tables, of those that are not far ahead."""
    now = T0 + 10**9
    made.append({**post("bob", "1"), "at": now + 5})
    made.batch()
    made.append({**post("bob", "2"), "at": now + 9}, {**post("bob", "3"), "at": now + 2 * AHEAD})

    async def use(log: FeedLog) -> list[int]:
        await log.now()
        return [log.stamps.next() for _ in range(3)]

    assert followed(made, use) == [now + 10, now + 11, now + 12]


def test_a_progress_that_went_back(made):
    """After a cut of the power an older batch may be the last: what it did not take is pending."""
    made.append(post("bob", "1", 1))
    made.batch()
    older = msgspec.json.encode(made.engine.progress)
    made.append(post("bob", "2", 2))
    made.batch()

    async def use(log: FeedLog) -> list[set[str]]:
        newest = ids((await log.now()).pending)
        made.home.write_progress(msgspec.Raw(older))
        return [newest, ids((await log.now()).pending)]

    assert followed(made, use) == [set(), {"2"}]


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_appends_and_batches(made, seed, monkeypatch):
    """Pending records are always those between the batch and the log's end. Objects that a thread
    got before stay unchanged."""
    monkeypatch.setattr(feed_log, "MUCH_RECORDS", 5)
    monkeypatch.setattr(feed_log, "MUCH_BYTES", 300)
    monkeypatch.setattr(feed_log, "SKIPPED_BYTES", 500)
    choose = Random(seed)
    appended: list[list[str]] = []
    given: list[tuple[FeedMoment, set[str]]] = []

    async def use(log: FeedLog) -> None:
        taken = 0
        for number in range(60):
            act = choose.choice(("append", "append", "batch", "look", "share"))
            if act == "append":
                block = [f"{number}-{one}" for one in range(choose.randint(1, 4))]
                made.append(*(post("bob", one, number + 1) for one in block))
                appended.append(block)
            elif act == "batch":
                all_of_it = choose.random() < 0.5
                made.batch(None if all_of_it else 1)
                taken = len(appended) if all_of_it else min(taken + 1, len(appended))
            else:
                moment = await log.now(shared=act == "share")
                expected = {one for block in appended[taken:] for one in block}
                assert ids(moment.pending) == expected
                if act == "share":
                    given.append((moment, expected))

    followed(made, use)
    assert given
    for moment, expected in given:
        assert ids(moment.pending) == expected
