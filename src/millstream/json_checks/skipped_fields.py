"""Checks what a JSON decoder does not check of the fields that it skips.

A decoder that is given a struct builds only the struct's fields. It checks the syntax of the fields
that it skips, but neither their UTF-8, nor the range of their numbers, nor how deep they are. And
it does not mind a value that spans two lines. What is read in this way must be the same as what
decoding every line completely gives, so only a block for which all of this is certain is read so.
It is certain if both of these hold:

- Each line is one whole object: either every line has exactly one `{` and then one `}` (so no
  string has a bracket, and no value spans two lines), or every newline is between `}` and `{`,
  which cannot be inside a value. The decoder must find as many values as there are lines.
- The whole block has no bytes that are not UTF-8, no number that is out of range and no value that
  is nested too deeply.
"""

from __future__ import annotations

import re

from millstream.json_checks.json_depth import DEEPEST, any_too_deep

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}\n")
_OTHER_NEWLINE = re.compile(rb"\n(?!(?<=\}\n)\{)")
"""A newline that is not between `}` and `{`."""
_DIGITS = bytes.maketrans(b"123456789+E", b"0000000000e")
_EXPONENT = re.compile(rb"e0")
_LARGE = re.compile(rb"[:,\[\s]-?[0-9.]+[eE]\+?[0-9]{3}")
LONGEST_NUMBER = b"0" * 200
"""A number with fewer digits in a row, and at most two digits in its exponent, is in range."""


def objects_in(block: bytes) -> int:
    r"""Returns the number of lines of a block, which has no newline at its end; 0 if it is not
    certain that a decoder which skips fields refuses every line that is not one valid object.

    >>> objects_in(b'{"a":1}\n{"a":[2]}'), objects_in(b'{"a":\n1}{"a":2}')
    (2, 0)
    >>> objects_in(b'{"a":1e99}'), objects_in(b'{"a":1e999}')
    (1, 0)
    """
    brackets = block.translate(None, _NO_BRACKETS)
    count = len(brackets) // 3 + 1
    if brackets != b"{}\n" * (count - 1) + b"{}":
        if block[:1] != b"{" or block[-1:] != b"}" or _OTHER_NEWLINE.search(block):
            return 0
        count = block.count(b"\n") + 1
        if max(map(len, brackets.split(b"\n"))) > 2 * DEEPEST and any_too_deep(block.split(b"\n")):
            return 0
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return 0
    digits = block.translate(_DIGITS)
    if LONGEST_NUMBER in digits:
        return 0
    # Most blocks have no e before a digit, and the search for one is the faster one.
    return 0 if _EXPONENT.search(digits) and _LARGE.search(block) else count
