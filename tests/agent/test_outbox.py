"""The outbox: what was put in is there after any crash, and the restart point is always right."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from taking_root import entry, message

from millstream.agent.delivery.bodies import LONGEST, fitted
from millstream.agent.delivery.outbox import GROUP_BYTES, Outbox, OutboxEntry
from millstream.errors import StoreError

MUCH = 1 << 30


def quiet(sentence: str) -> None:
    raise AssertionError(sentence)


def opened(folder: Path, most: int = MUCH, say: Any = quiet) -> Outbox:
    return Outbox(folder, most, say)


def panes(outbox: Outbox) -> list[int]:
    return [one.pane for one in outbox.entries()]


def files(folder: Path, kind: str = "panes") -> list[Path]:
    return sorted(folder.glob(f"*.{kind}"))


def test_what_was_put_in_is_there_after_a_start(tmp_path: Path) -> None:
    """Entries come back in order and byte for byte; the newest one says where to read on."""
    given = [entry("web 1", 5, x=1), entry("web 1", 6, 9), entry("web 1", 9, y=2)]
    outbox = opened(tmp_path)
    outbox.put(given[:2])
    outbox.put(given[2:])
    again = opened(tmp_path)
    found = list(again.entries())
    assert [(one.job, one.node, one.pane, one.until, one.body) for one in found] == [
        (one.job, one.node, one.pane, one.until, one.body) for one in given
    ]
    assert again.newest() == outbox.newest() == {"after": 10}
    assert again.bytes == outbox.bytes == sum(path.stat().st_size for path in files(tmp_path))


def test_the_restart_point_outlives_what_was_sent(tmp_path: Path) -> None:
    """When all was taken, in whatever order, the newest entry's restart point is still known."""
    outbox = opened(tmp_path)
    for pane in range(4):
        outbox.put([entry("a", pane)])
    for group in sorted(outbox.groups(), key=lambda one: -one.number):
        outbox.remove(group)
    assert (panes(outbox), outbox.bytes) == ([], 0)
    again = opened(tmp_path)
    assert (panes(again), again.newest()) == ([], {"after": 4})
    assert len(list(tmp_path.iterdir())) == 1, "what was sent is not kept for ever"


def test_numbers_go_on_after_a_start(tmp_path: Path) -> None:
    """After a restart, new entries have higher numbers than all earlier ones, including those that
    were sent."""
    outbox = opened(tmp_path)
    outbox.put([entry("a", 1)])
    outbox.remove(outbox.groups()[0])
    again = opened(tmp_path)
    again.put([entry("a", 2)])
    assert opened(tmp_path).newest() == {"after": 3}


def test_thousands_of_panes_are_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Panes that are put in together cost one file and one sync, and are sent in one request."""
    synced = []
    true_fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), true_fsync(handle)))
    outbox = opened(tmp_path)
    outbox.put([entry("a", pane, x=pane) for pane in range(5_000)])
    assert len(files(tmp_path)) == 1
    assert len(synced) == 2, "the file, and the folder with its name"
    assert panes(outbox) == list(range(5_000))


def test_a_group_is_no_longer_than_a_request(tmp_path: Path) -> None:
    """More than 4 MiB become several groups, each with its own restart point."""
    large = [
        OutboxEntry(
            "counts", "a", pane, pane + 1, b"%d" % pane * (GROUP_BYTES // 3), {"after": pane}
        )
        for pane in range(1, 8)
    ]
    outbox = opened(tmp_path)
    outbox.put(large)
    assert [[one.pane for one in outbox.read(group)] for group in outbox.groups()] == [
        [1, 2],
        [3, 4],
        [5, 6],
        [7],
    ]
    assert [outbox.read(group)[-1].after for group in outbox.groups()][:2] == [
        {"after": 2},
        {"after": 4},
    ]


def test_it_says_when_it_is_full(tmp_path: Path) -> None:
    """The outbox is full from `most_bytes` on, and no longer once an entry was removed."""
    outbox = opened(tmp_path, most=300)
    while not outbox.full:
        outbox.put([entry("a", len(outbox.groups()))])
    assert outbox.bytes >= 300
    outbox.remove(outbox.groups()[0])
    assert not outbox.full


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not all can be written none is there, now and after a start; later it can be put in."""
    outbox = opened(tmp_path)
    outbox.put([entry("a", 1)])
    many = [
        OutboxEntry("counts", "a", pane, pane + 1, b"1" * GROUP_BYTES, {"after": pane})
        for pane in range(2, 5)
    ]
    true_fsync, left = os.fsync, [1]

    def fsync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        true_fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError, match="No space left on device; make room"):
            outbox.put(many)
    assert (panes(outbox), outbox.newest()) == ([1], {"after": 2})
    assert len(list(tmp_path.iterdir())) == 1, "it takes no more of the disk"
    assert panes(opened(tmp_path)) == [1]
    outbox.put(many)
    assert panes(outbox) == panes(opened(tmp_path)) == [1, 2, 3, 4]


@pytest.mark.parametrize("harm", ["changed", "cut", "emptied"])
def test_a_damaged_file_is_put_aside(tmp_path: Path, harm: str) -> None:
    """The damaged file is named, and the others are still sent. Reading restarts before its panes,
    also if the agent ends at once and is restarted."""
    outbox = opened(tmp_path)
    for pane in range(1, 6):
        outbox.put([entry("a", pane, x=pane)])
    outbox.remove(outbox.groups()[0])
    hurt = files(tmp_path)[1]
    data = hurt.read_bytes()
    damage = {"changed": data.replace(b'"x":3', b'"x":4'), "cut": data[:-9], "emptied": b""}
    hurt.write_bytes(damage[harm])
    said: list[str] = []
    again = opened(tmp_path, say=said.append)
    assert panes(again) == [2, 4, 5]
    assert again.newest() == {"after": 3}
    assert len(said) == 1
    assert hurt.name in said[0]
    assert (tmp_path / "damaged" / hurt.name).read_bytes() == damage[harm]
    assert opened(tmp_path).newest() == {"after": 3}
    again.put([entry("a", 3, x=3)])
    assert opened(tmp_path).newest() == {"after": 4}


def test_damage_of_what_was_sent_last(tmp_path: Path) -> None:
    """If nothing is left from before the damage, reading restarts at the beginning."""
    outbox = opened(tmp_path)
    outbox.put([entry("a", 1)])
    outbox.remove(outbox.groups()[0])
    files(tmp_path, "sent")[0].write_bytes(b"00000000 {}\n")
    said: list[str] = []
    assert opened(tmp_path, say=said.append).newest() is None
    assert said


def test_a_file_that_was_never_whole_is_nothing(tmp_path: Path) -> None:
    """The rest of a file that was being written during a crash is ignored."""
    outbox = opened(tmp_path)
    outbox.put([entry("a", 1)])
    (tmp_path / "000000000002.tmp").write_bytes(b"half of a")
    again = opened(tmp_path)
    assert (panes(again), again.newest()) == ([1], {"after": 2})
    assert not list(tmp_path.glob("*.tmp"))


@given(st.lists(st.sampled_from(["put", "first", "last", "middle", "start"]), max_size=30))
def test_it_is_a_queue_whatever_happens(steps: list[str]) -> None:
    """For any sequence of puts, removals and restarts, exactly the entries that were not removed
    wait, and the restart point is that of the last put."""
    with TemporaryDirectory() as name:
        outbox, waiting, pane = opened(Path(name)), [], 0
        for step in steps:
            if step == "put":
                pane += 1
                outbox.put([entry("a", pane)])
                waiting.append(pane)
            elif step == "start":
                outbox = opened(Path(name))
            elif waiting:
                index = {"first": 0, "last": -1, "middle": len(waiting) // 2}[step]
                outbox.remove(outbox.groups()[index])
                del waiting[index]
            assert panes(outbox) == waiting
            assert outbox.newest() == ({"after": pane + 1} if pane else None)
            assert len(list(Path(name).iterdir())) <= pane - (len(waiting) < pane) + 1


def test_a_pane_too_long_to_send_is_told_as_lost() -> None:
    """Its records are counted as shed, and what is sent is short."""
    said: list[str] = []
    large = message("a", 7, **{f"key {n} {'x' * 200}": 2 for n in range(LONGEST // 200)})
    counts = replace(large.nodes["a"], bytes=11, total=99, shed=1, late={"3": 1})
    large = replace(large, nodes={"a": counts})
    sent, body = fitted(large, said.append)
    told = sent.nodes["a"]
    assert len(body) < 1_000
    assert "pane 7" in said[0]
    assert (told.mark, told.why, told.records, told.bytes) == ("lost", "memory", 0, 0)
    assert (told.shed, told.shed_bytes) == (2 * (LONGEST // 200) + 1, 11)
    assert (told.total, told.late) == (99, {"3": 1})
    assert sent.partials == {}


def test_a_pane_that_json_cannot_carry_is_told_as_lost() -> None:
    """Its records are dead: no value of it can be sent."""
    odd = message("a", 7, x=3)
    odd.partials["x"] = float("nan")
    sent, _ = fitted(odd, lambda sentence: None)
    told = sent.nodes["a"]
    assert (told.mark, told.records, told.dead, told.shed) == ("lost", 0, 3, 0)


def test_a_pane_that_fits_is_sent_as_it_is() -> None:
    """Nothing is changed of it."""
    plain = message("a", 7, x=3)
    sent, body = fitted(plain, quiet)
    assert sent is plain
    assert b'"partials":{"x":3}' in body
