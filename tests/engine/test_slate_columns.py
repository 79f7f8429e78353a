"""Slates that are packed and read together are as those that are packed and read one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.codec import slate_codec
from millstream.columnar.arrow_arrays import bytes_array
from millstream.engine.cells.slate_columns import pack_plain, unpack_plain
from millstream.stores.layout import COMPRESS_FROM, pack_slate
from millstream.update_tables import table_form

times = st.integers(-(2**62), 2**62)
whole = st.integers(-(2**63), 2**63 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)


@dataclasses.dataclass
class Numbers:
    """A slate of numbers."""

    n: int = 0
    mean: float = 0.0
    größe: int = 0


@dataclasses.dataclass
class Mixed:
    """A slate with a text."""

    n: int | None = None
    text: str = ""


@given(st.lists(st.tuples(times, st.binary(max_size=20)), max_size=8))
def test_rows_are_those_of_single_slates(slates: list[tuple[int, bytes]]) -> None:
    rows = [pack_slate(last, data, {}) for last, data in slates]
    last = np.array([last for last, _ in slates], np.int64)
    assert pack_plain(last, bytes_array([data for _, data in slates])) == rows
    unpacked = unpack_plain(rows)
    assert unpacked is not None
    assert list(zip(unpacked[0].tolist(), unpacked[1], strict=True)) == slates


def test_rows_that_have_more_are_left_to_the_general_way() -> None:
    large = b"x" * COMPRESS_FROM
    assert pack_plain(np.array([1]), bytes_array([large])) is None
    for row in (
        pack_slate(1, large, {}),
        pack_slate(1, b"{}", {}, 2),
        pack_slate(1, b"{}", {"t": ("event", 5)}),
    ):
        assert unpack_plain([row]) is None


@given(st.lists(st.builds(Numbers, whole, real, whole), min_size=1, max_size=5))
def test_slates_of_numbers_are_written_as_their_codec_does(slates: list[Numbers]) -> None:
    assert_written(Numbers, slates)


@given(st.lists(st.builds(Mixed, st.none() | whole, st.text(max_size=5)), min_size=1, max_size=5))
def test_other_slates_are_written_as_their_codec_does(slates: list[Mixed]) -> None:
    assert_written(Mixed, slates)


def assert_written(kind: type, slates: list[Numbers] | list[Mixed]) -> None:
    """The columns of slates give the bytes that their codec gives, and these the columns again."""
    form, encoded = table_form(kind, None), list(map(slate_codec(kind).encode, slates))
    columns = form.slate_columns(slates)
    assert form.encoded(columns).to_pylist() == encoded
    assert form.stored_columns(encoded) == columns
