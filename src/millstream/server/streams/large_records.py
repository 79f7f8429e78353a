"""Checks large records without building their values.

Eight megabytes of JSON can hold millions of small objects. Building them would keep all other
requests waiting for seconds and take hundreds of megabytes. So only the fields that the source
takes its key and its time from are decoded. The rest is only checked to be JSON in UTF-8. That does
not find a number that no float can hold; the application finds it when it reads the record, which
becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from millstream.errors import InputError

LARGE_BYTES = 64 << 10
LINE_BYTES = 8 << 20
"""A longer line is refused: readers of the log must be able to hold many lines in memory."""


def in_one_line(body: bytes) -> bytes:
    r"""Puts a JSON value in any layout into one line.

    >>> in_one_line(b'{\n  "a": [1,\r\n 2]\n}')
    b'{"a":[1,2]}'
    """
    if not LARGE_BYTES < len(body) <= LINE_BYTES:  # a longer one may be mostly white space
        return msgspec.json.format(body, indent=-1)
    # JSON strings cannot contain line ends, so these are white space between tokens.
    return body.replace(b"\n", b" ").replace(b"\r", b" ").strip()


def skimmer(paths: Iterable[str]) -> Callable[[bytes], Any]:
    """Returns a function that decodes only these fields of a record, given as dotted paths.

    A value that is no object is replaced by an empty one of its kind. The function raises
    InputError if one of the fields is itself large.

    >>> skimmer(["user.id", "time"])(b'{"user": {"id": 7, "x": [1]}, "more": [{}], "time": "9"}')
    {'user': {'id': 7}, 'time': '9'}
    """
    skim = _object_skimmer(list(paths))

    def skim_line(line: bytes) -> Any:
        line.decode()  # the decoder does not check the UTF-8 of what it skips
        return skim(line)

    return skim_line


def _object_skimmer(paths: list[str]) -> Callable[[bytes], Any]:
    inner: dict[str, list[str]] = {}
    whole: set[str] = set()
    for path in paths:
        name, _, rest = path.partition(".")
        further = inner.setdefault(name, [])
        if rest:
            further.append(rest)
        else:
            whole.add(name)
    skims = {
        name: _value if name in whole else _object_skimmer(further)
        for name, further in inner.items()
    }
    fields = [(f"f{number}", msgspec.Raw, msgspec.Raw()) for number in range(len(skims))]
    names = {f"f{number}": name for number, name in enumerate(skims)}
    shape = msgspec.defstruct("Skimmed", fields, rename=lambda field: names[field])
    decode = msgspec.json.Decoder(shape).decode

    def skim(text: bytes) -> Any:
        if not text.lstrip().startswith(b"{"):
            msgspec.json.decode(text, type=msgspec.Raw)
            return _KINDS.get(text.lstrip()[:1], 0)
        values = zip(skims.items(), msgspec.structs.astuple(decode(text)), strict=True)
        return {name: skim_field(bytes(raw)) for (name, skim_field), raw in values if bytes(raw)}

    return skim


_KINDS: dict[bytes, Any] = {b"[": [], b'"': "", b"t": True, b"f": False, b"n": None}


def _value(text: bytes) -> Any:
    """Decodes a whole field; raises InputError if it is large."""
    if len(text) > LARGE_BYTES:
        raise InputError(
            f"a field that is the key or the time must have at most {LARGE_BYTES} bytes; got "
            f"{len(text)}"
        )
    return msgspec.json.decode(text)
