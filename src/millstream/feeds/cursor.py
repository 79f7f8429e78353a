"""Cursors: where a page of a feed ends, as text that a client keeps and gives back.

A cursor says all that is needed to go on, so that it works after a restart, on another server, and
whatever was posted in between: nothing is kept for it. It stands beside a post, not on a number of
posts, so that new ones shift nothing. It is opaque but no secret, and gives no right: it is base64
of a compact JSON list with a version, behind a checksum that tells a damaged one from a good one.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

from millstream.errors import InputError
from millstream.feeds.names import SEP, Position
from millstream.feeds.records import LATEST, LONGEST_NAME

Direction = Literal["older", "newer"]
Key = tuple[bool, Position]
"""Where a post stands with per-producer coherency: whether it is a lead (see `diversity`), and its
position. Pages go from the greatest key to the least."""

VERSION = 1
LONGEST = 4_000
"""Characters of a cursor: the names in it are not longer than a record's."""
CHECK = 4
"""Bytes of the checksum."""
_DIRECTIONS: dict[str, Direction] = {"o": "older", "n": "newer"}


@dataclass(frozen=True, slots=True)
class Diverse:
    """What per-producer coherency needs beside a position, in order to go on as it began."""

    as_of: int
    """The time of the newest post of the first page: later ones are no part of these pages."""
    now: int
    """When the first page was asked for, from which `t` goes back."""
    k: int
    t: int
    """In microseconds."""
    lead: bool
    """Whether the position is among the leads."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Go on from a post, in a direction; the post itself is not shown again."""

    direction: Direction
    position: Position
    diverse: Diverse | None = None
    """None with global coherency."""

    @property
    def coherency(self) -> str:
        return "global" if self.diverse is None else "per-producer"

    @property
    def key(self) -> Key:
        return self.diverse is not None and self.diverse.lead, self.position

    def text(self) -> str:
        """As a client gets it.

        >>> Cursor.read(Cursor("older", (7, "ann", "x")).text())
        Cursor(direction='older', position=(7, 'ann', 'x'), diverse=None)
        """
        said: list[Any] = [VERSION, self.direction[0], *self.position]
        if self.diverse is not None:
            one = self.diverse
            said += [one.as_of, one.now, one.k, one.t, int(one.lead)]
        packed = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
        return urlsafe_b64encode(_check(packed) + packed).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> Cursor:
        """As a client gives it back. Raises InputError if it never came from `text`."""
        try:
            cursor = _read(text)
            # Only what would be written so was written by us: other spellings are no cursors.
            if cursor.text() == text:
                return cursor
        except (ValueError, TypeError, RecursionError):
            pass
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise InputError(
            "cursor must be what an answer of this feed gave as 'next' or 'previous', unchanged; "
            f"got {shown!r}; ask without a cursor to begin with the newest items"
        )


def from_and_including(position: Position, direction: Direction) -> Position:
    """A position for a cursor that shows the post at this one again, and goes on from there.

    >>> from_and_including((7, "ann", "x"), "newer") < (7, "ann", "x")
    True
    >>> from_and_including((7, "ann", "x"), "older") > (7, "ann", "x")
    True
    """
    ts, producer, post = position
    return (ts, producer, "") if direction == "newer" else (ts, producer, post + SEP)


def _read(text: str) -> Cursor:
    if len(text) > LONGEST:
        raise ValueError("too long")
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    check, packed = raw[:CHECK], raw[CHECK:]
    if check != _check(packed):
        raise ValueError("damaged")
    version, direction, ts, producer, post, *more = json.loads(packed)
    if version != VERSION or direction not in _DIRECTIONS or len(more) not in (0, 5):
        raise ValueError("of another version")
    _check_whole(0, LATEST, ts)
    for name in (producer, post):
        if type(name) is not str or len(name) > LONGEST_NAME + 1:
            raise ValueError("no name")
    position = (ts, producer, post)
    if not more:
        return Cursor(_DIRECTIONS[direction], position)
    as_of, now, k, t, lead = more
    _check_whole(0, LATEST, as_of, now)
    _check_whole(1, LATEST, k, t)
    _check_whole(0, 1, lead)
    return Cursor(_DIRECTIONS[direction], position, Diverse(as_of, now, k, t, bool(lead)))


def _check(packed: bytes) -> bytes:
    return crc32(packed).to_bytes(CHECK)


def _check_whole(least: int, most: int, *numbers: Any) -> None:
    if any(type(one) is not int or not least <= one <= most for one in numbers):
        raise ValueError("no number that it may be")
