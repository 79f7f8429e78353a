"""JSON files that are one array of objects, in one line or over many: its elements are records.

DESIGN
------
The elements are found by their brackets, commas and strings, and decoded one by one: a large file
need not fit into memory, and an element that cannot be decoded is bad on its own. Nothing is taken
from a file whose brackets do not match or that ends early: it can be written again, complete and
under a new name, without anything being counted twice. So a file is scanned to its end before its
first element is yielded.

Which files are one array: `line_records.is_array`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import msgspec

from millstream.json_checks.json_depth import DEEPEST, too_deep
from millstream.model.letter_records import Bad, bad_record
from millstream.sources import line_blocks
from millstream.sources.formats import CHUNK_RECORDS, Chunk

HELD_BYTES = 32 * 1024 * 1024
"""The maximum number of bytes of elements that are kept between the two passes over a file."""
_decode = msgspec.json.Decoder().decode
_TEXT = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'[^{}\[\]"]*+'
_TOKEN = re.compile(
    rb"\{%b(?:%b%b)*+\}|%b|" % (_PLAIN, _TEXT, _PLAIN, _TEXT) + rb'["\[\]{},]', re.S
)
"""An object without nested brackets, a string, a bracket, or a comma."""
_QUOTE, _COMMA = ord('"'), ord(",")
_CLOSES = {ord("]"): ord("["), ord("}"): ord("{")}


class ArrayElement(NamedTuple):
    """An element of the array, as it is in the file."""

    line: int
    """The number of lines before the one on which it begins."""
    text: bytes


def array_chunks(file: IO[bytes]) -> Iterator[Chunk]:
    """Yields the elements of a file that is one array, or one error for the whole file."""
    held: list[ArrayElement] | None = []
    size = 0
    try:
        for element in elements(file.read):
            size += len(element.text)
            if held is not None and size <= HELD_BYTES:
                held.append(element)
            else:
                held = None
    except ValueError as error:
        yield Chunk([], None, [_broken(error)], None)
        return
    if held is None:
        file.seek(0)
        yield from _chunks(elements(file.read))
    else:
        yield from _chunks(iter(held))


def _broken(error: ValueError) -> Bad:
    return Bad(
        0,
        "",
        f"a JSON file that begins with [ must be one whole array; {error}, and nothing of it was "
        "read: write it whole elsewhere, then rename it into the directory under a new name; or "
        "write one record a line",
    )


def _chunks(items: Iterator[ArrayElement]) -> Iterator[Chunk]:
    chunk = Chunk([], None, [], [])
    for line, text in items:
        try:
            record: Any = _decode(text)
            if too_deep(text):
                raise ValueError(f"it is nested more than {DEEPEST} deep")
        except (ValueError, RecursionError) as error:
            message = f"an element must be one whole JSON value; got this: {str(error)[:200]}"
            chunk.bad.append(bad_record(line + 1, text, message, "json"))
        else:
            chunk.records.append(record)
            assert chunk.lines is not None
            chunk.lines.append(line)
        if len(chunk.records) + len(chunk.bad) >= CHUNK_RECORDS:
            yield chunk
            chunk = Chunk([], None, [], [])
    if chunk.records or chunk.bad:
        yield chunk


def elements(read: Callable[[int], bytes]) -> Iterator[ArrayElement]:
    """Yields the elements of an array from the start of a file; ValueError if it is not complete.

    >>> from io import BytesIO
    >>> [text for _, text in elements(BytesIO(b'[{"a": "]"},\\n {"b": [1, 2]}]').read)]
    [b'{"a": "]"}', b'{"b": [1, 2]}']
    """
    data = read(line_blocks.BLOCK_BYTES).removeprefix(line_blocks.BOM)
    opened = bytearray()
    at = begin = 0
    """The offset up to which brackets were scanned, and the offset at which the element begins."""
    line = counted = 0
    """`line` is the number of lines before the offset `counted`."""
    separated = False
    while True:
        scanned = len(data)
        for token in _TOKEN.finditer(data, at):
            place, end = token.span()
            byte = data[place]
            if byte == _QUOTE:
                if end - place == 1:  # a string that continues in the next block
                    scanned = place
                    break
                continue
            if byte in b"[{":
                if end - place > 1:  # a whole object
                    continue
                opened.append(byte)
                if len(opened) == 1:
                    begin = end
                continue
            if byte in b"]}" and opened.pop() != _CLOSES[byte]:
                line += data.count(b"\n", counted, place)
                raise ValueError(f"{chr(byte)!r} in line {line + 1} closes another bracket")
            last = not opened
            if last or (byte == _COMMA and len(opened) == 1):
                text = data[begin:place]
                if text.strip() or separated or not last:
                    first = begin + len(text) - len(text.lstrip())
                    line, counted = line + data.count(b"\n", counted, first), first
                    yield ArrayElement(line, text.strip())
                begin, separated = end, True
            if last:
                _check_end(data[end:], read)
                return
        line, counted = line + data.count(b"\n", counted, begin), 0
        if len(data) - begin > line_blocks.LINE_BYTES:
            raise ValueError(f"an element is longer than {line_blocks.LINE_BYTES} bytes")
        more = read(line_blocks.BLOCK_BYTES)
        if not more:
            raise ValueError("it ends too early")
        data, at, begin = data[begin:] + more, scanned - begin, 0


def _check_end(rest: bytes, read: Callable[[int], bytes]) -> None:
    while not rest.strip():
        rest = read(line_blocks.BLOCK_BYTES)
        if not rest:
            return
    raise ValueError("more follows after its end")
