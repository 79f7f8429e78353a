"""Marks of the scoreboard, as they are stored."""

from __future__ import annotations

import msgspec
import pytest

from millstream.codec import encode_value
from millstream.windows.panes.pane_mark import mark_of, read_marks, stored_marks

COMMON = ["data", 5, 50, "", 1, 10, 2, 0, 8, 100, 200, -1]


@pytest.mark.parametrize("rare", [[], [3], [3, 1], [0, 1]])
def test_a_mark_is_stored_as_in_earlier_versions(rare: list[int]) -> None:
    """An array of 12 values, with records of an implausible time and a cut at its end only if
    there are any; what is read is stored in the same bytes again, and leads to its manifest."""
    stored = {"a": [*COMMON, *rare]}
    marks = read_marks(stored)
    assert encode_value(stored_marks(marks)) == encode_value(stored)
    mark = marks["a"]
    manifest = mark.manifest(7)
    assert (manifest.misdated, manifest.cut) == (sum(rare[:1]), len(rare) == 2)
    assert mark_of(manifest, 8) == mark
    assert msgspec.structs.asdict(mark.unread()) == msgspec.structs.asdict(mark) | {"read": 0}


def test_late_records_are_in_the_manifest_of_their_own_pane() -> None:
    """A mark with late records gives a manifest that names the pane to which they belong."""
    (mark,) = read_marks({"a": [*COMMON[:7], 4, *COMMON[8:]]}).values()
    assert mark.manifest(7).late == {"7": 4}
    assert mark.is_lost  # bytes of the log are gone
