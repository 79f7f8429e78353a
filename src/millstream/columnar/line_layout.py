"""Reads JSON lines of one layout as columns, and writes them again, without a JSON parser.

Lines have one layout if they are flat objects with the same fields in the same order, written with
the same spaces, and if each field always is a text without escapes or always a whole number. Then
everything but the values is the same in every line. The positions of the quotes say where a value
must be; the bytes between the values are compared with those of the first line, and the digits of
all numbers are converted together. A block of lines is read only if all of this is certain: each
byte of it has been compared, or belongs to a value. So what is read is what a JSON parser gives,
and writing it gives the same bytes. For any other block `read` returns None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from millstream.columnar.arrow_arrays import Integers, integer_array, text_array

_FIELD = re.compile(rb'[ ]*"([^"\\]*)"[ ]*:[ ]*(?:"([^"\\]*)"|(-?[0-9]+))')
_END = re.compile(rb"[ ]*\}")
MOST_DIGITS = 18
"""A whole number with so many digits fits into 64 bits."""
_BEFORE, _AFTER = b"\n" * 24, b"\n" * 8
"""Around a block, so that eight bytes can be loaded before and after each of its values."""
_ZEROS = np.uint64(0x3030303030303030)
_TENS = np.uint64(0x7676767676767676)
_HIGHEST = np.uint64(0x8080808080808080)
_LAST = np.array([0] + [(1 << 64) - (1 << (64 - 8 * n)) for n in range(1, 9)], np.uint64)
"""Masks of the last n of eight bytes."""
Column = Any
"""Integers, or an Arrow array of large_string."""


class LineLayout(NamedTuple):
    """What lines have in common."""

    names: tuple[str, ...]
    texts: tuple[bool, ...]
    """True for each field that is a text; the others are whole numbers."""
    pieces: tuple[bytes, ...]
    """The bytes before each value, and those after the last one."""

    def lines(self, columns: Sequence[Column]) -> pa.Array:
        """Returns the lines with these values, as an array of large_binary."""
        *befores, last, between = text_array([*map(bytes.decode, self.pieces), ""])
        parts: list[Any] = []
        for before, column, is_text in zip(befores, columns, self.texts, strict=True):
            parts += [before, column if is_text else integer_array(column).cast(pa.large_string())]
        return pc.binary_join_element_wise(*parts, last, between).cast(pa.large_binary())


class LaidLines(NamedTuple):
    """Lines of one layout, as columns."""

    layout: LineLayout
    columns: list[Column]
    """A column for each field: integers, or texts as large_string."""

    def column(self, name: str, *, text: bool) -> Column | None:
        """Returns the column of a field; None if the lines have none of this type."""
        layout = self.layout
        at = layout.names.index(name) if name in layout.names else None
        return self.columns[at] if at is not None and layout.texts[at] is text else None


class LayoutReader:
    """Reads blocks of lines. It holds on to the layout of the block before."""

    def __init__(self) -> None:
        self._layout: LineLayout | None = None

    def read(self, block: bytes) -> LaidLines | None:
        """Returns the lines of a block, which has no newline at its end; None if it is not certain
        that they have one layout."""
        if not block.isascii() or b"\\" in block:
            return None
        if self._layout is not None and (laid := _read(self._layout, block)) is not None:
            return laid
        end = block.find(b"\n")
        layout = layout_of(block if end < 0 else block[:end])
        if layout is None or layout == self._layout:
            return None
        self._layout = layout
        return _read(layout, block)


def layout_of(line: bytes) -> LineLayout | None:
    """Returns the layout of a line.

    >>> layout_of(b'{"key":"a","n":5}')
    LineLayout(names=('key', 'n'), texts=(True, False), pieces=(b'{"key":"', b'","n":', b'}'))
    >>> layout_of(b'{"key":[]}')
    """
    names: list[str] = []
    texts: list[bool] = []
    pieces: list[bytes] = []
    at = begin = 0
    while line[at : at + 1] == (b"," if names else b"{"):
        field = _FIELD.match(line, at + 1)
        if field is None:
            return None
        is_text = field[2] is not None
        start, at = field.span(2 if is_text else 3)
        names.append(field[1].decode())
        texts.append(is_text)
        pieces.append(line[begin:start])
        begin, at = at, at + is_text
    if not names or len({*names}) < len(names) or _END.fullmatch(line, at) is None:
        return None
    return LineLayout(tuple(names), tuple(texts), (*pieces, line[begin:]))


def _read(layout: LineLayout, block: bytes) -> LaidLines | None:
    """Returns the lines of an ASCII block without escapes; None unless all have this layout."""
    padded = b"".join((_BEFORE, block, _AFTER))
    octets = np.frombuffer(padded, np.uint8)
    quotes = np.flatnonzero(octets == ord('"'))
    in_line = sum(piece.count(b'"') for piece in layout.pieces)
    if not len(quotes) or len(quotes) % in_line:
        return None
    eights: NDArray[np.uint64] = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    at_quotes = quotes.reshape(-1, in_line)
    count = len(at_quotes)
    if np.count_nonzero(octets < ord(" ")) != len(_BEFORE) + len(_AFTER) + count - 1:
        return None  # a control character, or a number of lines that is not that of the quotes
    begins = _places(layout.pieces, at_quotes)
    starts = begins[0]
    ends = np.empty(count, np.int64)
    ends[:-1], ends[-1] = starts[1:] - 1, len(_BEFORE) + len(block)
    if starts[0] != len(_BEFORE) or not bool((octets[ends] == ord("\n")).all()):
        return None
    if len(begins) < len(layout.pieces):  # the last piece has no quote
        begins.append(ends - len(layout.pieces[-1]))
    elif not bool((begins[-1] + len(layout.pieces[-1]) == ends).all()):
        return None
    for piece, begin in zip(layout.pieces, begins, strict=True):
        # Before its first quote a piece may have more spaces than there are bytes before that.
        if int(begin.min()) < 0 or not _is_at(piece, begin, eights):
            return None
    columns: list[Column] = []
    for number, is_text in enumerate(layout.texts):
        start, stop = begins[number] + len(layout.pieces[number]), begins[number + 1]
        column = _texts(padded, start, stop) if is_text else _integers(octets, eights, start, stop)
        if column is None:
            return None
        columns.append(column)
    return LaidLines(layout, columns)


def _places(pieces: tuple[bytes, ...], at_quotes: Integers) -> list[Integers]:
    """Returns where the pieces that have a quote begin in each line."""
    begins: list[Integers] = []
    quote = 0
    for piece in pieces:
        if (first := piece.find(b'"')) >= 0:
            begins.append(at_quotes[:, quote] - first)
            quote += piece.count(b'"')
    return begins


def _is_at(piece: bytes, begin: Integers, eights: NDArray[np.uint64]) -> bool:
    """True if a piece is at each of these places."""
    size = len(piece)
    if size < 8:
        mask = np.uint64((1 << 8 * size) - 1)
        wanted = np.uint64(int.from_bytes(piece, "little"))
        return bool(((eights[begin] & mask) == wanted).all())
    for at in (*range(0, size - 8, 8), size - 8):
        wanted = np.uint64(int.from_bytes(piece[at : at + 8], "little"))
        if not bool((eights[begin + at] == wanted).all()):
            return False
    return True


def _texts(padded: bytes, start: Integers, stop: Integers) -> pa.Array:
    """Returns the texts between these places."""
    count = len(start)
    offsets = np.empty(2 * count + 2, np.int64)
    offsets[0], offsets[1:-1:2], offsets[2:-1:2] = 0, start, stop
    offsets[-1] = offsets[-2]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(padded)]
    spans = pa.Array.from_buffers(pa.large_string(), 2 * count + 1, buffers)
    return spans.take(integer_array(np.arange(1, 2 * count, 2)))


def _integers(
    octets: NDArray[np.uint8], eights: NDArray[np.uint64], start: Integers, stop: Integers
) -> Integers | None:
    """Returns the whole numbers between these places; None if there is something else."""
    first = octets[start]
    negative = first == ord("-")
    is_signed = bool(negative.any())
    if is_signed:
        start = start + negative
        first = octets[start]
    digits = stop - start
    least, most = int(digits.min()), int(digits.max())
    if least < 1 or most > MOST_DIGITS:
        return None
    if bool(((first == ord("0")) & ((digits > 1) | negative)).any()):
        return None  # 01 is no number, and -0 would be written as 0
    numbers: Integers | None = None
    for place in range(0, most, 8):
        part = eights[stop - (place + 8)] ^ _ZEROS
        if least < place + 8:
            part &= _LAST[np.clip(digits - place, 0, 8)]
        if bool((((part + _TENS) | part) & _HIGHEST).any()):
            return None  # not a digit
        value = _eight_digits(part)
        numbers = value if numbers is None else numbers + value * 10**place
    assert numbers is not None
    return np.where(negative, -numbers, numbers) if is_signed else numbers


def _eight_digits(digits: NDArray[np.uint64]) -> Integers:
    """Returns numbers, given eight digits of each, one in a byte, the highest one first."""
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    pairs &= np.uint64(0x00FF00FF00FF00FF)
    fours = pairs * np.uint64(100) + (pairs >> np.uint64(16))
    fours &= np.uint64(0x0000FFFF0000FFFF)
    eight = fours * np.uint64(10_000) + (fours >> np.uint64(32))
    eight &= np.uint64(0xFFFFFFFF)
    return eight.view(np.int64)
