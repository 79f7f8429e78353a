"""Sample: passes on a fraction of the events, the same ones in every run.

An event is taken if its hash, as a number from 0 to 1, is below `fraction`. The hash is of the
event's stream, time, key and value, or of its key alone. With the key alone, either all or none of
a key's events are taken (S4 assigned users to an experiment this way, section IV.B). The hash is
BLAKE2b and not the shard hash, because samples with different seeds must be independent of each
other and of the shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from millstream.codec import encode_value
from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.errors import DefinitionError
from millstream.model.event import Emit, Event

_ALL = 1 << 64


@dataclass
class Sample(Element):
    """Passes on, unchanged, about `fraction` of the events."""

    fraction: Configured[float]
    seed: Configured[int] = 0
    by: Configured[Literal["event", "key"]] = "event"

    def __post_init__(self) -> None:
        configuration(self)
        if not 0 <= self.fraction <= 1:
            raise DefinitionError(
                f"element Sample: fraction must be from 0 to 1; got {self.fraction!r}"
            )
        if not -(1 << 63) <= self.seed < 1 << 63:
            raise DefinitionError(
                f"element Sample: seed must be a whole number of 64 bits; got {self.seed!r}"
            )
        self._salt = self.seed.to_bytes(8, "big", signed=True)
        self._below = int(self.fraction * _ALL)

    def process_event(self, event: Event) -> Iterator[Emit]:
        content = event.key.encode()
        if self.by == "event":
            parts = (event.stream.encode(), b"%d" % event.ts, content, encode_value(event.value))
            content = b"\x00".join(parts)
        digest = blake2b(content, digest_size=8, salt=self._salt).digest()
        if int.from_bytes(digest, "big") < self._below:
            yield from self.to_all()
