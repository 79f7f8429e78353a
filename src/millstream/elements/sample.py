"""Sample: a fraction of the events, the same ones in every run.

An event is taken if a hash of it, a number from 0 to 1, is below `fraction`. The hash is of the
event's time, key and value, or of its key alone: then a key's events are taken all or none (S4
assigned users to an experiment so, section IV.B). It is BLAKE2b and not the shard hash: samples
with different seeds must have nothing to do with one another, nor with the shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from millstream.codec import encode_value
from millstream.elements.element import Configured, Element, configuration
from millstream.errors import DefinitionError
from millstream.model.event import Emit, Event

_ALL = 1 << 64


@dataclass
class Sample(Element):
    """Passes on, as they are, about `fraction` of the events."""

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
        drawn = event.key.encode()
        if self.by == "event":
            parts = (event.stream.encode(), b"%d" % event.ts, drawn, encode_value(event.value))
            drawn = b"\x00".join(parts)
        hashed = blake2b(drawn, digest_size=8, salt=self._salt).digest()
        if int.from_bytes(hashed, "big") < self._below:
            yield from self.to_all()
