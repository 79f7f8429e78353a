"""Appending to a source's log: groups, failures, clients that leave, the end."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from checkins import stored

from millstream.errors import LogError, LogLocked
from millstream.log.mirror import LogMirror
from millstream.log.reader import LogReader
from millstream.log.writer import Appended, Entry, LogWriter, TagMismatch
from millstream.places.directory_place import DirectoryPlace
from millstream.server.streams import appender as module
from millstream.server.streams.appender import Appender, Appenders, Overloaded


def entry(*lines: bytes, tag: str = "", digest: int = 0) -> Entry:
    return Entry.of(list(lines), tag, digest)


def run(path: Path, act: Callable[[Appender], Awaitable[None]]) -> list[str]:
    """Do something with an appender of a log; what was said meanwhile."""
    said: list[str] = []

    async def whole() -> None:
        appenders = Appenders(said.append)
        try:
            await act(appenders.of(path))
        finally:
            await appenders.close()

    asyncio.run(whole())
    return said


def blocks(path: Path) -> int:
    """Returns the number of writes in a log."""
    reader = LogReader(path)
    count = sum(1 for _ in reader.blocks(reader.start[0], reader.end[0]))
    reader.close()
    return count


def test_what_is_acknowledged_is_there(tmp_path: Path) -> None:
    """When an append returns, a reader finds its records under their numbers."""

    async def act(appender: Appender) -> None:
        assert await appender.append(entry(b"1", b"2"), 2) == Appended(0, 2, False)
        assert stored(tmp_path / "log") == [b"1", b"2"]
        assert await appender.append(entry(b"3"), 1) == Appended(2, 1, False)
        assert stored(tmp_path / "log") == [b"1", b"2", b"3"]

    assert run(tmp_path / "log", act) == []


def test_requests_at_once_are_appended_together(tmp_path: Path) -> None:
    """Concurrent appends share writes; each gets its own records, in the order asked."""

    async def act(appender: Appender) -> None:
        appends = [appender.append(entry(b"%d" % number), 1) for number in range(200)]
        found = await asyncio.gather(*appends)
        assert [one.first for one in found] == list(range(200))

    run(tmp_path / "log", act)
    assert stored(tmp_path / "log") == [b"%d" % number for number in range(200)]
    assert blocks(tmp_path / "log") == 1


def test_requests_at_hand_are_appended_together(tmp_path: Path) -> None:
    """A write has the requests of the event loop's next round too, not only the first one."""

    async def act(appender: Appender) -> None:
        async def later(rounds: int) -> Appended:
            for _ in range(rounds):
                await asyncio.sleep(0)
            return await appender.append(entry(b"%d" % rounds), 1)

        found = await asyncio.gather(*map(later, range(2)))
        assert [one.first for one in found] == [0, 1]

    run(tmp_path / "log", act)
    assert blocks(tmp_path / "log") == 1


def test_groups_are_bounded(tmp_path: Path) -> None:
    """A write takes about four MiB, however much waits."""

    async def act(appender: Appender) -> None:
        line = b'"' + b"x" * (1 << 20) + b'"'
        await asyncio.gather(*(appender.append(entry(line), len(line)) for _ in range(10)))

    run(tmp_path / "log", act)
    reader = LogReader(tmp_path / "log")
    sizes = [b.next_offset - b.offset for b in reader.blocks(0, reader.end[0])]
    reader.close()
    assert sum(sizes) > 10 << 20
    assert max(sizes) < 6 << 20


def test_the_same_tag_counts_once(tmp_path: Path) -> None:
    """Repeats, at once or later, get the first answer. Other content is refused."""

    async def act(appender: Appender) -> None:
        same = entry(b"1", b"2", tag="a", digest=7)
        found = await asyncio.gather(*(appender.append(same, 2) for _ in range(5)))
        assert {(one.first, one.count) for one in found} == {(0, 2)}
        assert sorted(one.repeated for one in found) == [False, True, True, True, True]
        assert await appender.append(same, 2) == Appended(0, 2, True)
        other, next_ = await asyncio.gather(
            appender.append(entry(b"3", tag="a", digest=8), 1),
            appender.append(entry(b"4"), 1),
            return_exceptions=True,
        )
        assert isinstance(other, TagMismatch)
        assert next_ == Appended(2, 1, False)

    run(tmp_path / "log", act)
    assert stored(tmp_path / "log") == [b"1", b"2", b"4"]


def test_a_request_that_is_given_up_is_appended(tmp_path: Path) -> None:
    """A client that goes away while its append waits changes nothing about it."""

    async def act(appender: Appender) -> None:
        waiting = asyncio.ensure_future(appender.append(entry(b"1"), 1))
        await asyncio.sleep(0)
        waiting.cancel()
        assert await appender.append(entry(b"2"), 1) == Appended(1, 1, False)
        assert waiting.cancelled()

    run(tmp_path / "log", act)
    assert stored(tmp_path / "log") == [b"1", b"2"]


def test_closing_finishes_what_waits(tmp_path: Path) -> None:
    """Appends that were asked for before the end are done; later ones are turned away."""

    async def act(appender: Appender) -> None:
        appends = [asyncio.ensure_future(appender.append(entry(b"%d" % n), 1)) for n in range(20)]
        await asyncio.sleep(0)
        await appender.close()
        assert [(await one).first for one in appends] == list(range(20))
        with pytest.raises(Overloaded, match="the server stops"):
            await appender.append(entry(b"x"), 1)

    run(tmp_path / "log", act)
    assert len(stored(tmp_path / "log")) == 20
    LogWriter(tmp_path / "log").close()  # it was let go


def test_a_disk_that_refuses(tmp_path: Path) -> None:
    """A failed append leaves nothing behind, and the next one works once the disk does again."""
    path = tmp_path / "log"

    async def act(appender: Appender) -> None:
        path.write_bytes(b"")  # a file where the folder must be
        with pytest.raises(LogError, match=str(path)):
            await appender.append(entry(b"1"), 1)
        path.unlink()
        assert await appender.append(entry(b"2"), 1) == Appended(0, 1, False)
        shutil.rmtree(path)
        with pytest.raises(LogError, match="removed"):
            await appender.append(entry(b"3"), 1)
        assert await appender.append(entry(b"4"), 1) == Appended(0, 1, False)

    run(path, act)
    assert stored(path) == [b"4"]


def test_a_log_that_another_process_writes(tmp_path: Path) -> None:
    """The error names that process; once it is gone the log is taken."""
    code = (
        "import sys; from millstream.log.writer import LogWriter; w = LogWriter(sys.argv[1]); "
        "print('up', flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "log")], stdin=pipe, stdout=pipe
    )

    async def act(appender: Appender) -> None:
        with pytest.raises(LogLocked, match=str(other.pid)):
            await appender.append(entry(b"1"), 1)
        other.communicate()
        assert await appender.append(entry(b"1"), 1) == Appended(0, 1, False)

    try:
        assert other.stdout is not None
        assert other.stdout.readline()
        run(tmp_path / "log", act)
    finally:
        other.kill()
        other.wait()


def test_a_torn_tail_is_said(tmp_path: Path) -> None:
    """The rest of an interrupted append is cut off, and its size is reported."""
    path = tmp_path / "log"
    writer = LogWriter(path)
    writer.append([entry(b"1"), entry(b"2")])
    writer.close()
    (segment,) = path.glob("*.log")
    with segment.open("ab") as file:
        file.write(b"MSB\xff torn")

    async def act(appender: Appender) -> None:
        assert await appender.append(entry(b"3"), 1) == Appended(2, 1, False)

    said = run(path, act)
    assert len(said) == 1
    assert said[0].startswith(f"log {path}: ")
    assert " 9 bytes" in said[0]
    assert stored(path) == [b"1", b"2", b"3"]


def test_too_much_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a limit of waiting bytes more is turned away; a lone large request never is."""
    monkeypatch.setattr(module, "WAITING_BYTES", 10)

    async def act(appender: Appender) -> None:
        assert await appender.append(entry(b"1"), 100) == Appended(0, 1, False)
        waiting = asyncio.ensure_future(appender.append(entry(b"2"), 8))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="try again"):
            await appender.append(entry(b"3"), 8)
        assert (await waiting).first == 1
        assert await appender.append(entry(b"3"), 8) == Appended(2, 1, False)

    run(tmp_path / "log", act)


def test_old_segments_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old segments are removed from time to time, also while nothing is appended."""
    path = tmp_path / "log"
    old = LogWriter(path, segment_bytes=100, clock=lambda: 1)
    for number in range(3):
        old.append([entry(b'"%s"' % (b"%d" % number * 60))])
    old.close()
    reader = LogReader(path)
    reader.commit("slow", [0, 0])
    monkeypatch.setattr(module, "RETAIN_SECONDS", 0.05)

    async def act(appender: Appender) -> None:
        await appender.append(entry(b"1"), 1)
        assert len(list(path.glob("*.log"))) > 1
        reader.reload()
        reader.commit("slow", reader.end)
        async with asyncio.timeout(10):
            while len(list(path.glob("*.log"))) > 1:
                await asyncio.sleep(0.01)

    run(path, act)
    reader.close()
    assert stored(path) == [b"1"]


def test_servers_append_to_one_log_in_a_place(tmp_path: Path) -> None:
    """Two servers take requests at once, and a repeat that goes to the other: each counts once."""
    place = DirectoryPlace(tmp_path / "place")

    async def whole() -> list[Appended]:
        servers = [
            Appenders(lambda said: None, place=place).of(tmp_path / f"mirror{number}" / "log")
            for number in range(2)
        ]
        sent = [
            server.append(entry(b"%d" % number, tag=f"k{number}"), 1)
            for number in range(50)
            for server in servers
        ]
        try:
            return await asyncio.gather(*sent)
        finally:
            for server in servers:
                await server.close()

    answers = asyncio.run(whole())
    assert sorted(answer.first for answer in answers if not answer.repeated) == [*range(50)]
    assert [one.first for one in answers[::2]] == [other.first for other in answers[1::2]]
    LogMirror(place, "log", tmp_path / "read").close()
    assert sorted(stored(tmp_path / "read")) == sorted(b"%d" % number for number in range(50))
