"""Picking two fields out of JSON lines gives what decoding them whole gives, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millstream.columnar.picked_fields import Fields
from millstream.sources import line_blocks
from millstream.sources.formats import Chunk, InputSplit
from millstream.sources.json_lines import JsonLines, decode_lines
from millstream.sources.picked import picker

PLAIN = b'{"key":"a","ts":1,"x":%s}'
ODD = (
    b"", b" ", b"[]", b"1", b"null", b'{"key":"a","ts":1} {"key":"b","ts":2}', b'{"key":"a",',
    b'"ts":1}', b'{"key":"a","ts":1}\r', b' {"key":"a","ts":1} ', b'{"key":"a"}', b'{"ts":1}',
    b'{"key":"a","ts":1,"key":"b"}', b'{"key":5,"ts":1}', b'{"key":"a","ts":1.0}',
    b'{"key":"a","ts":true}', b'{"key":"a","ts":"1"}', b'{"key":null,"ts":1}', b'{"key":"a","ts":1',
    b'{"x":[{"b":1}', b'{"c":1}],"key":"a","ts":1}', b'{"k\\u0065y":"\\u00e9","ts":-0}',
    b'{"key":"\xc3\xa9","ts":99999999999999999999999}', b'{"key":"\\ud800","ts":1}',
    *(PLAIN % x for x in (
        b'"\xff"', b'"\xc3\xa9"', b"1e999", b"1E+400", b"-1e400", b"1e+0400", b"1e0000400",
        b"0.1e-999", b"1e30", b"1e308", b"01", b"1.", b"-", b"NaN", b'"\\q"', b'"\\ud83d\\ude00"',
        b'"\\ud800"', b'"a\tb"', b"[1,]", b'{"\xff":1}', b'"1e999"', b'"k1e12345"', b"9" * 299,
        b"9" * 5000, b"1" + b"0" * 400 + b".5", b"[" * 498 + b"]" * 498, b"[" * 499 + b"]" * 499,
        b"[" * 600 + b"]" * 600, b"[ 1e999]", b"{\"y\":\t1e999}", b'"}\\n{"', b"[{},{}]",
        b"123456789012345678901234567890e290", b"1" * 290 + b"e99", b"1" * 290 + b"e10",
    )),
)  # fmt: skip
lines = st.lists(
    st.one_of(
        st.builds(
            lambda key, ts: json.dumps({"key": key, "ts": ts, "n": [1]}).encode(),
            st.text(max_size=3),
            st.integers(-(2**70), 2**70),
        ),
        st.sampled_from(ODD),
    ),
    min_size=1,
    max_size=5,
)


def each(odd: tuple[bytes, ...]) -> Iterator[list[bytes]]:
    good = PLAIN % b"2"
    for line in odd:
        yield [line]
        yield [good, line, good]


@example([b'{"x":[{"b":1}', b'{"c":1}],"key":"a","ts":1}', ODD[5]])
@given(lines)
def test_what_is_picked_is_what_decoding_gives(given: list[bytes]) -> None:
    """Where anything is picked, every line is a good record, with that key and that time."""
    check(given)


@pytest.mark.parametrize("given", list(each(ODD)), ids=lambda given: repr(given)[:40])
def test_odd_lines_are_given_up_or_right(given: list[bytes]) -> None:
    """A line that the general way refuses, or reads otherwise, makes the block be given up."""
    check(given)


def check(given: list[bytes]) -> None:
    picked = picker(Fields("key", "ts", lines=True))(b"\n".join(given))
    if picked is None:
        return
    assert picked.lines.to_pylist() == given
    whole = decode_lines(given, 0, lambda: 0)
    assert not whole.bad
    assert picked.keys.to_pylist() == [record["key"] for record in whole.records]
    times = [record["ts"] for record in whole.records]
    assert picked.times.tolist() == times
    assert {type(time) for time in times} == {int}


def test_plain_lines_are_picked() -> None:
    """The common case is not given up: flat records, nested ones, hexadecimal keys, exponents."""
    given = [
        b'{"key":"1e999abc","ts":1700000000000000,"n":1.5e-7,"more":{"list":[1,2]}}',
        b'{"ts":2,"key":"b","text":"\xc3\xa9 1e5"}',
    ]
    keys, times = ["1e999abc", "b"], [1700000000000000, 2]
    assert listed(Fields("key", "ts"), given) == (keys, times)
    assert listed(Fields(None, "ts"), given) == (None, times)
    assert listed(Fields("key", None), given) == (keys, None)


def listed(fields: Fields, given: list[bytes]) -> tuple[list[str] | None, list[int] | None]:
    picked = picker(fields)(b"\n".join(given))
    assert picked is not None
    assert picked.lines is None
    keys, times = picked.keys, picked.times
    return None if keys is None else keys.to_pylist(), None if times is None else times.tolist()


def test_lines_of_one_layout_leave_out_what_can_be_made_again() -> None:
    """Columns come instead of the lines, unless these have texts that no column has."""
    fields = Fields("key", "ts", lines=True, numbers=True)
    for more, is_whole in ((b"", True), (b',"text":"x"', False)):
        given = [b'{"key":"%s","ts":1,"n":-5%s}' % (key, more) for key in (b"a", b"bc")]
        picked = picker(fields)(b"\n".join(given))
        assert picked is not None
        assert picked.laid is not None
        assert picked.laid.column("n", text=False).tolist() == [-5, -5]
        assert (picked.lines is None) is is_whole
        if picked.lines is not None:
            assert picked.lines.to_pylist() == given
        either = picker(Fields("key", "ts", lines=True, whole=True))(b"\n".join(given))
        assert either is not None
        assert ((either.lines is None), (either.laid is None)) == (is_whole, not is_whole)


def test_a_file_is_picked_from_block_by_block(tmp_path: Path) -> None:
    """Blocks that cannot be picked from come whole, at their lines; the others can, after all."""
    good, bad = b'{"key":"a","ts":1}\n', b'{"key":"a","ts":\n'
    path = tmp_path / "lines.json"
    path.write_bytes(b"\xef\xbb\xbf" + good * 20 + bad + good * 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_BYTES", 100)
        split = InputSplit(str(path), 0, path.stat().st_size)
        chunks = list(JsonLines().read(split, Fields("key", "ts")))
    picked = [chunk for chunk in chunks if chunk.picked is not None]
    assert picked
    wholes: list[Chunk] = [chunk.whole() if chunk.whole else chunk for chunk in chunks]
    assert sum(len(chunk.records) for chunk in wholes) == 40
    assert [bad.line for chunk in wholes for bad in chunk.bad] == [21]
    numbers = [chunk.line_of(n) for chunk in wholes for n in range(len(chunk.records))]
    assert numbers == [*range(1, 21), *range(22, 42)]
