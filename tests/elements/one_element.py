"""An element with all kinds of fields, and an application that has one element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest

import millstream as ms


@dataclass
class Fraction(ms.Element):
    """An element with all kinds of fields."""

    least: ms.Configured[int]
    words: ms.Configured[list[str]] = field(default_factory=list)
    how: ms.Configured[Literal["all", "some"]] = "all"
    share: ms.Configured[float] = 0.5
    rest: ms.Configured[dict[str, int] | None] = None
    limit_of: ClassVar[int] = 3
    seen: int = 0
    kinds: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._double = 2 * self.least

    def process_event(self, event: ms.Event) -> Iterator[Any]:
        self.seen += 1
        self.kinds.setdefault(event.value, []).append(event.ts)
        if self.seen >= self.least:
            yield ms.emit(value=[self.key, self.time, self._double, self.limit_of, self.seen])


def placed(element: ms.Element, **options: Any) -> ms.App:
    app = ms.App("shop")
    app.source("sales")
    app.output("out")
    app.add(element, **{"keys": "sales", "name": "one", "publishes": "out", **options})
    return app


def sales(*keys: str) -> list[ms.Event]:
    return [ms.Event("sales", ts, key, "pen") for ts, key in enumerate(keys, start=1)]


def refused(element: Any, **options: Any) -> str:
    with pytest.raises(ms.DefinitionError) as error:
        placed(element, **options)
    return str(error.value)
