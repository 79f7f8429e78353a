"""Cursors: the end of a feed page, as text that a client keeps and sends back.

A cursor contains everything that is needed to continue. It works after a restart and on another
server; the server keeps no state for it. It is a position beside a post, not a count of posts, so
new posts do not shift it. A cursor is opaque, but neither secret nor a permission: it is base64 of
a compact JSON list with a version, preceded by a checksum that detects damage.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from zlib import crc32

import msgspec
from msgspec import Meta

from millstream.errors import CursorUnknown, InputError
from millstream.feeds.names import SEP, Position
from millstream.feeds.records import LATEST, LONGEST_NAME

Direction = Literal["older", "newer"]
Key = tuple[bool, Position]
"""The place of a post with per-producer coherency: whether it is a lead (see `diversity`), and its
position. Pages go from the greatest key to the least."""

VERSION = 1
SHORTEST, LONGEST = 26, 4_000
"""The lengths in characters. Names in a cursor are no longer than those of a record."""
CursorText = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9_-]{{{SHORTEST},{LONGEST}}}$(?!\n)")]
"""The form of a cursor."""
CHECK = 4
"""Bytes of the checksum."""
_DIRECTIONS: dict[str, Direction] = {"o": "older", "n": "newer"}


@dataclass(frozen=True, slots=True)
class Diverse:
    """The extra state that per-producer coherency needs to continue as it began."""

    as_of: int
    """The time of the newest post of the first page. Later posts are not part of these pages."""
    now: int
    """The time of the request for the first page. `t` is counted back from it."""
    k: int
    t: int
    """In microseconds."""
    lead: bool
    """True if the position is among the leads."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A request to continue from a post in one direction. The post itself is not shown again."""

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
        """The cursor as text for the client.

        >>> Cursor.read(Cursor("older", (7, "ann", "x")).text())
        Cursor(direction='older', position=(7, 'ann', 'x'), diverse=None)
        """
        fields: list[Any] = [VERSION, self.direction[0], *self.position]
        if self.diverse is not None:
            diverse = self.diverse
            fields += [diverse.as_of, diverse.now, diverse.k, diverse.t, int(diverse.lead)]
        packed = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
        return urlsafe_b64encode(_check(packed) + packed).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Parses the text of a client. Raises InputError if it does not have the form of a cursor,
        CursorUnknown if `text` did not produce it."""
        error: type[InputError] = CursorUnknown
        try:
            msgspec.convert(text, CursorText)
            cursor = _read(text)
            # Reject other spellings of the same cursor: we write only the canonical one.
            if cursor.text() == text:
                return cursor
        except msgspec.ValidationError:
            error = InputError
        except (ValueError, TypeError, RecursionError):
            pass
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise error(
            "cursor must be the 'next' or 'previous' of an answer of this feed, unchanged; "
            f"got {shown!r}; ask without a cursor to begin with the newest items"
        )


def from_and_including(position: Position, direction: Direction) -> Position:
    """A position for a cursor that shows the post at `position` again and continues from there.

    >>> from_and_including((7, "ann", "x"), "newer") < (7, "ann", "x")
    True
    >>> from_and_including((7, "ann", "x"), "older") > (7, "ann", "x")
    True
    """
    ts, producer, post = position
    return (ts, producer, "") if direction == "newer" else (ts, producer, post + SEP)


def _read(text: str) -> Cursor:
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
    if any(type(number) is not int or not least <= number <= most for number in numbers):
        raise ValueError("a number is out of range")
