"""Watching a directory: every file is found, in order, and idling is cheap."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.errors import InputError
from millstream.sources import directory_watch
from millstream.sources.directory_watch import Watched


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def look(watched: Watched, known: set[str]) -> list[str]:
    """New names, which are known from then on."""
    found, _ = watched.look(known)
    known.update(file.path for file in found)
    return [os.path.relpath(file.path, watched.directory) for file in found]


def test_order_and_what_is_skipped(tmp_path: Path) -> None:
    """By time, then path; hidden, underscored, temporary and empty files are left out."""
    for name, mtime in (("b", 1), ("c", 1), ("a", 2), ("deep/x", 1)):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
        os.utime(file, (mtime, mtime))
    for name in (".hidden", "_success", "half.tmp", "_temporary/x", ".git/x"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
    (tmp_path / "empty").touch()
    assert look(Watched(str(tmp_path), Clock()), set()) == ["b", "c", "deep/x", "a"]


def test_an_empty_file_is_taken_when_it_has_content(tmp_path: Path) -> None:
    """Content does not change the directory, and is found all the same."""
    clock = Clock()
    watched, known = Watched(str(tmp_path), clock), set[str]()
    (tmp_path / "a").touch()
    for _ in range(5):
        assert look(watched, known) == []
        clock.now += 2
    (tmp_path / "a").write_text("1")
    assert look(watched, known) == ["a"]


@settings(max_examples=examples(150), deadline=None)
@given(
    tick=st.floats(0.001, 2.0),
    steps=st.lists(
        st.tuples(st.sampled_from(["look", "add", "deep"]), st.sampled_from([0, 0.01, 0.5, 1, 2])),
        max_size=40,
    ),
)
def test_no_file_is_missed_however_coarse_the_stamps(
    tick: float, steps: list[tuple[str, float]]
) -> None:
    """Files that arrive within one tick of the file system's clock, after a listing, are found."""
    clock = Clock()
    changed: dict[str, float] = {}

    def stamp(path: str) -> tuple[int, ...]:
        return (int(changed.get(path, 0) // tick),)

    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory_watch, "_stamp", stamp)
        os.mkdir(f"{root}/deep")
        watched, known, added = Watched(root, clock), set[str](), set[str]()
        for number, (step, wait) in enumerate(steps):
            clock.now += wait
            if step == "look":
                look(watched, known)
                assert known == added
            else:
                directory = root if step == "add" else f"{root}/deep"
                Path(directory, str(number)).write_text("1")
                added.add(f"{directory}/{number}")
                changed[directory] = clock.now
        look(watched, known)
        assert known == added


def test_a_settled_directory_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle for some seconds, a look reads stamps only; each minute it lists all the same."""
    clock, listed = Clock(), list[str]()
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or real(path))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_text("1")
    watched, known = Watched(str(tmp_path), clock), set[str]()
    look(watched, known)
    clock.now = 10
    look(watched, known)
    listed.clear()
    clock.now = 20
    assert look(watched, known) == []
    assert listed == []
    (tmp_path / "deep" / "b").write_text("1")
    assert look(watched, known) == ["deep/b"]
    assert listed == [str(tmp_path / "deep")]
    listed.clear()
    clock.now = 100
    look(watched, known)
    assert str(tmp_path) in listed


def test_names_that_cannot_be_text_and_links_to_directories_warn_once(tmp_path: Path) -> None:
    """Such names are skipped, with a single warning."""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("1")
    (tmp_path / "link").symlink_to("/", target_is_directory=True)
    watched = Watched(str(tmp_path), Clock())
    found, warnings = watched.look(set())
    assert found == []
    assert len(warnings) == 2
    assert watched.look(set()) == ([], [])


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """The error says which directory and what to do; a file is not a directory either."""
    with pytest.raises(InputError, match="does not exist; create it"):
        Watched(str(tmp_path / "none"), Clock()).look(set())
    (tmp_path / "a.jsonl").write_text("1")
    with pytest.raises(InputError, match=f"it is a file; name the directory.*{tmp_path}"):
        Watched(str(tmp_path / "a.jsonl"), Clock()).look(set())
