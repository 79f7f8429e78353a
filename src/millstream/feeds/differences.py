"""What differs from what must be, in words and as a record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it must be."""

    consumer: str
    where: str
    """In the feed as it is read, or in which table."""
    must: str = ""
    got: str = ""
    producer: str | None = None
    post: str | None = None

    def of(self, must: str, got: str) -> Difference:
        """The same place, with what must be and what came."""
        return replace(self, must=must, got=got)

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        of = [f"consumer {self.consumer!r}"]
        of += [f"producer {self.producer!r}"] if self.producer is not None else []
        of += [f"post {self.post!r}"] if self.post is not None else []
        return f"{', '.join(of)}: {self.where}: {self.must}; got {self.got}"


def shortened(value: Any) -> str:
    """A value as it is written, with its end left out if it is long.

    >>> shortened("x" * 100) == repr("x" * 100)[:79] + "…"
    True
    """
    text = repr(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
