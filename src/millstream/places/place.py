"""A place: named objects that every host sees, written whole and never changed in part.

DESIGN
------
A service must provide only five operations, so that a file system, S3, Google Cloud Storage and
Azure all qualify. Each operation takes effect completely or not at all.

*Creating* is the foundation: of all callers that create one name, exactly one gets True. But an
answer may be lost, or the client may retry a create that succeeded and learn that the name is
taken: by itself. `created` resolves this by reading the object back. For this the content must
differ from that of any other writer; an id inside it ensures that.

*Checksums*: every object ends with the SHA-256 of its name and its content (`sealed`), so that a
damaged, truncated or swapped object is always detected.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple, Protocol, TypeVar

from millstream.errors import PlaceDamaged, PlaceError
from millstream.retry_pause import doubled

T = TypeVar("T")
SEAL = 32
"""Bytes of a checksum, at the end of an object."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two attempts."""


class Listed(NamedTuple):
    """An object in a listing."""

    name: str
    size: int
    modified: float
    """Seconds since the epoch, by the clock of the place."""


class Place(Protocol):
    """Named objects. Names are parts of letters, digits, `.`, `_` and `-`, joined by `/`.

    Used by several threads at once. Every operation raises PlaceError if the service fails; then it
    may or may not have taken effect.
    """

    @property
    def address(self) -> str:
        """The address that the user gave; for messages."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Write an object, whether or not there is one; durable when this returns."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write an object if the name is free; False, with nothing changed, if it is taken."""
        ...

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """The bytes of an object, or those from `start` up to `end`; None if it does not exist."""
        ...

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Objects whose names start with `prefix` and sort after `after`, in name order."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; ignores those that do not exist."""
        ...


def sealed(name: str, content: bytes) -> bytes:
    """Appends the checksum to an object's content."""
    return content + _seal(name, content)


def unsealed(place: Place, name: str, data: bytes) -> bytes:
    """Strips the checksum of an object; PlaceDamaged if the content does not match it."""
    content = data[:-SEAL]
    if len(data) < SEAL or data[-SEAL:] != _seal(name, content):
        raise PlaceDamaged(
            f"{place.address}/{name}: its {len(data)} bytes do not fit its checksum: the object is "
            "damaged or truncated; restore it from a copy or an earlier version of the bucket"
        )
    return content


def _seal(name: str, content: bytes) -> bytes:
    return sha256(name.encode() + b"\x00" + content).digest()


def read(place: Place, name: str) -> bytes | None:
    """The content of a sealed object; None if it does not exist."""
    data = place.get(name)
    return None if data is None else unsealed(place, name, data)


def folders_in(place: Place, prefix: str) -> Iterator[str]:
    """The first parts of the names after a prefix such as `logs/`; one request for each."""
    after = ""
    while True:
        listed = next(iter(place.list(prefix, after)), None)
        if listed is None:
            return
        folder = listed.name.removeprefix(prefix).partition("/")[0]
        yield folder
        after = f"{prefix}{folder}/~"  # sorts after all names in this folder


def created(place: Place, name: str, data: bytes) -> bool:
    """Create an object, and find out for certain whether this call created it.

    `data` must differ from that of any other writer. Raises PlaceError only if the place does not
    answer.
    """
    try:
        if place.create(name, data):
            return True
    except PlaceError:
        current = place.get(name)
        if current is None:
            raise
        return current == data
    return place.get(name) == data  # taken: by an earlier attempt of our own, or by another writer


def persistent(
    attempt: Callable[[], T],
    seconds: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> T:
    """Calls `attempt`, retries while it raises PlaceError, for up to `seconds`; returns its result.

    Only for idempotent operations. PlaceDamaged is not retried.
    """
    until, tries = clock() + seconds, 0
    while True:
        try:
            return attempt()
        except PlaceDamaged:
            raise
        except PlaceError:
            tries += 1
            wait = doubled(tries, FIRST_PAUSE, LONGEST_PAUSE)
            if clock() + wait > until:
                raise
        pause(wait * random.uniform(0.5, 1.0))  # so that hosts do not all retry at once
