"""Lines of one layout are read as JSON says, and written as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millstream.columnar.line_layout import LaidLines, LayoutReader, layout_of

words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
numbers = st.one_of(
    st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-12, 12), st.integers(-(2**70), 2**70)
)
ODD = (
    b"", b" ", b"{}", b"[]", b"1", b'{"a":1', b'"a":1}', b'{"a":1}\r', b' {"a":1}', b'{"a":1} ',
    b'{"a":1,"a":1}', b'{"a":1,}', b'{,"a":1}', b'{"a":01}', b'{"a":-0}', b'{"a":-}', b'{"a":+1}',
    b'{"a":1.0}', b'{"a":1e5}', b'{"a":"1"}', b'{"a":""}', b'{"a":null}', b'{"a":}', b'{"a":1:2}',
    b'{"a":"\\n"}', b'{"a":"\t"}', b'{"a":"\x7f"}', b'{"a":"\xc3\xa9"}', b'{"b":1}', b'{"a" :1}',
    b'{"a": 1}', b'{ "a":1}', b'{"a":1 }', b'{"a":1}{"a":1}', b'{"a":12345678901234567890}',
    b'{"a":999999999999999999}', b'{"a":9999999999999999999}', b'{"a":-999999999999999999}',
    b'{"a":/}', b'{"a"::}', b'{"a":0}', b'{"a":-1}', b'{"a":1,"b":2}', b'{"a":1,"b":"x"}',
    b'{"a":"1","b":"x"}', b'{"a":"}"}', b'{"a":"{"}', b'{"a":",","b":","}', b'{"a":x}',
)  # fmt: skip


def same(lines: list[bytes]) -> LaidLines | None:
    """Checks that what is read of the lines is what JSON says; returns it."""
    reader = LayoutReader()
    laid = reader.read(b"\n".join(lines))
    if laid is None:
        return None
    records = [json.loads(line) for line in lines]
    layout = laid.layout
    for name, is_text in zip(layout.names, layout.texts, strict=True):
        column = laid.column(name, text=is_text)
        assert column is not None
        assert laid.column(name, text=not is_text) is None
        items: list[Any] = column.tolist()
        assert items == [record[name] for record in records]
        assert {type(item) for item in items} == {str if is_text else int}
    assert [list(record) for record in records] == [list(layout.names)] * len(lines)
    assert layout.lines(laid.columns).to_pylist() == lines
    assert reader.read(b"\n".join(lines)) is not None  # with the layout that is known now
    return laid


@given(
    st.lists(st.tuples(words, numbers, st.integers(0, 9)), min_size=1, max_size=20),
    st.sampled_from(((",", ":"), (", ", ": "))),
    st.integers(0, 40),
    st.sampled_from((None, *ODD)),
)
@example([("a", 5, 1)] * 3, (",", ":"), 1, ODD[0])
def test_lines_are_read_as_json_says(
    rows: list[tuple[str, int, int]], separators: tuple[str, str], at: int, odd: bytes | None
) -> None:
    """Any texts and numbers, and an odd line among them: all is given up, or right."""
    lines = [
        json.dumps({"a": number, "key": word, "n": digit}, separators=separators).encode()
        for word, number, digit in rows
    ]
    if odd is not None:
        lines.insert(min(at, len(lines)), odd)
    same(lines)


@given(
    st.lists(st.sampled_from((*ODD, *(b'{"a":%d}' % n for n in range(20)))), min_size=1, max_size=4)
)
def test_odd_lines_are_given_up_or_right(lines: list[bytes]) -> None:
    same(lines)


@given(st.data())
def test_one_wrong_byte_is_found(data: st.DataObject) -> None:
    """A line that differs in one byte makes the block be given up, or is read as JSON says."""
    lines = [b'{"key":"k%d","ts":%d,"n":%d}' % (n, 10**15 + n, n % 3) for n in range(9)]
    reader = LayoutReader()
    assert reader.read(b"\n".join(lines)) is not None
    number = data.draw(st.integers(0, 8))
    at = data.draw(st.integers(0, len(lines[number]) - 1))
    wrong = bytes([data.draw(st.integers(1, 255).filter(lambda byte: byte != ord("\n")))])
    lines[number] = lines[number][:at] + wrong + lines[number][at + 1 :]
    laid = reader.read(b"\n".join(lines))
    if laid is not None:
        assert laid.layout.lines(laid.columns).to_pylist() == lines
        assert same(lines) is not None


@given(st.lists(st.tuples(*[st.integers(0, 300)] * 4), min_size=2, max_size=3))
@example([(0, 0, 200, 0), (0, 0, 0, 0)])
def test_blocks_may_have_other_spaces_than_the_block_before(
    spaces: list[tuple[int, int, int, int]],
) -> None:
    """Each block is read as JSON says, whatever the layout of the block before."""
    reader = LayoutReader()
    for counts in spaces:
        line = b'{%s"a":%s5,%s"b":6%s}' % tuple(b" " * count for count in counts)
        laid = reader.read(line)
        assert laid is not None
        assert laid.layout.lines(laid.columns).to_pylist() == [line]


@pytest.mark.parametrize("digits", range(1, 20))
def test_numbers_of_any_length_are_read(digits: int) -> None:
    """Up to 18 digits, with and without a sign, of the same and of different lengths."""
    greatest = 10**digits - 1
    for column in ([greatest, -greatest], [greatest, 0, -1, 7 * 10 ** (digits // 2)], [greatest]):
        laid = same([b'{"key":"k","n":%d}' % number for number in column])
        assert (laid is not None) is (digits <= 18)


def test_a_layout_has_fields_of_texts_and_whole_numbers_only() -> None:
    assert layout_of(b'{"a":1.5}') is None
    assert layout_of(b'{"a":[1]}') is None
    assert layout_of(b'{"a":true}') is None
    layout = layout_of(b'{ "a" : "x", "b": -5 }')
    assert layout is not None
    assert layout.pieces == (b'{ "a" : "', b'", "b": ', b" }")
