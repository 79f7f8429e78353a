"""A difference found by verification, as text and as a record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the expected and the actual state."""

    consumer: str
    where: str
    """The feed as it is read, or the table that differs."""
    must: str = ""
    got: str = ""
    producer: str | None = None
    post: str | None = None

    def of(self, must: str, got: str) -> Difference:
        """Returns a difference at the same place, with the expected and the actual state."""
        return replace(self, must=must, got=got)

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        place = [f"consumer {self.consumer!r}"]
        place += [f"producer {self.producer!r}"] if self.producer is not None else []
        place += [f"post {self.post!r}"] if self.post is not None else []
        return f"{', '.join(place)}: {self.where}: {self.must}; got {self.got}"


def shortened(value: Any) -> str:
    """The repr of a value, cut off if it is long.

    >>> shortened("x" * 100) == repr("x" * 100)[:79] + "…"
    True
    """
    text = repr(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
