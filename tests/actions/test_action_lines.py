"""Carrying out into a file: each record once, whatever was left there by a death."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from asking import Store, drain
from file_limit import no_file_larger_than
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.actions.action_events import ActionEvent, ActionRow
from millstream.actions.attempt import AttemptOutcome
from millstream.actions.lines import LineFile, Stderr


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def event(number: int) -> ActionEvent:
    return ActionEvent("notify", f"id{number}", number, ActionRow(number, "k", msgspec.Raw(b"1")))


def test_a_line_for_each_record(tmp_path: Path) -> None:
    """Each record is one line of JSON, in order. Missing folders are created, and a file that was
    moved is started again."""
    store, path = Store(tmp_path), tmp_path / "deep" / "notes.jsonl"
    worker = store.worker(LineFile(path))
    store.ask("a", "b", value="line\nend")
    drain(store, worker)
    first, _ = path.read_text().splitlines()
    assert json.loads(first) == {
        "action": "notify",
        "id": store.id(0),
        "key": "a",
        "ts": 0,
        "value": "line\nend",
    }
    path.rename(tmp_path / "kept")
    store.ask("c")
    drain(store, worker)
    worker.close()
    assert ids(tmp_path / "kept") == [store.id(0), store.id(1)]
    assert ids(path) == [store.id(2)]


@settings(max_examples=examples(40))
@given(cut=st.integers(0, 10_000), before=st.sampled_from(["", '{"id":"x"}\n', "a line\n", "torn"]))
def test_what_a_death_left_is_completed(
    tmp_path_factory: pytest.TempPathFactory, cut: int, before: str
) -> None:
    """However much of a write reached the file before the process died, after the next start each
    record is there once and in order, and lines of other writers are unchanged."""
    folder = tmp_path_factory.mktemp("torn")
    store, path = Store(folder), folder / "notes.jsonl"
    path.write_text(before)
    worker = store.worker(LineFile(path))
    store.ask("a", "b", "c", value={"n": 1})
    position = (store.path / "actions" / "notify").read_bytes()
    drain(store, worker)
    worker.close()
    written = path.read_bytes()
    (store.path / "actions" / "notify").write_bytes(position)
    kept = len(before) + (not before.endswith("\n") and bool(before))
    path.write_bytes(written[: max(kept, len(written) - cut)])
    worker = store.worker(LineFile(path))
    drain(store, worker)
    worker.close()
    assert path.read_bytes() == written
    assert written.startswith(before.encode())


def test_a_full_disk(tmp_path: Path) -> None:
    """A group without room leaves no part of it; with room again, each record is there once."""
    store, path = Store(tmp_path), tmp_path / "notes"
    worker = store.worker(LineFile(path))
    store.ask("a")
    drain(store, worker)
    whole = path.read_bytes()
    carrier = LineFile(path)
    asked = [event(number) for number in range(3)]
    for room in (5, len(asked[0].json()) + 5):
        with no_file_larger_than(len(whole) + room):
            outcome = carrier.carry(asked)
        assert outcome == AttemptOutcome("again", f"{path}: File too large")
        assert path.read_bytes() == whole
    for _ in range(2):  # also if the process dies before it records that they are written
        assert carrier.carry(asked) == AttemptOutcome("done")
        carrier.close()
    assert ids(path) == [store.id(0), "id0", "id1", "id2"]


def test_what_others_write_meanwhile_stays(tmp_path: Path) -> None:
    """The file is ours alone; a line that was added all the same is not overwritten."""
    path = tmp_path / "notes"
    carrier = LineFile(path)
    for number in range(3):
        carrier.carry([event(number)])
        with path.open("a") as file:
            file.write('{"id":"other"}\n')
    carrier.close()
    assert ids(path) == ["id0", "other", "id1", "other", "id2", "other"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A record is retried and then becomes a dead letter. Once the file can be written, the next
    record goes there."""
    store, path = Store(tmp_path), tmp_path / "notes"
    path.mkdir()
    worker = store.worker(LineFile(path), tries=2)
    store.ask("a")
    assert drain(store, worker) == [0.5]
    assert worker.position.failed == 1
    path.rmdir()
    store.ask("b")
    drain(store, worker)
    worker.close()
    assert ids(path) == [store.id(1)]


def test_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each."""
    store = Store(tmp_path)
    worker = store.worker(Stderr())
    store.ask("a", "b")
    drain(store, worker)
    worker.close()
    assert [json.loads(line)["key"] for line in capsys.readouterr().err.splitlines()] == ["a", "b"]
