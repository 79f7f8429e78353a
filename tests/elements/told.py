"""An element that tells what it was given, and an application that has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import millstream as ms
from millstream.model.event import Event

SECOND = 1_000_000


@dataclass
class Told(ms.Element):
    """Emits all that it is told, and by whom."""

    heard: list[str] = field(default_factory=list)

    def process_event(self, event: Event) -> None:
        self.heard.append(f"{event.stream} {event.value.get('n')}")

    def output(self) -> Iterator[Any]:
        if self.heard[-1].endswith("bad"):
            raise ValueError("bad")
        yield ms.emit(value=[self.key, self.time, self.heard])


def placed(
    element: Any, *, order: Any = "arrival", sources: str = "sales", **options: Any
) -> ms.App:
    app = ms.App("shop", order=order)
    for source in sources.split():
        app.source(source)
    if "publishes" in options:
        app.output(options["publishes"])
    app.add(element, **{"keys": {"sales": "item"}, "name": "one", **options})
    return app


def sale(ts: int, item: str = "pen", n: Any = 0, stream: str = "sales") -> Event:
    return Event(stream, ts, "", {"item": item, "n": n})


def out(run: ms.testing.Run) -> list[Any]:
    return [event.value for event in run.stream("out")]


def refused(element: Any, **options: Any) -> str:
    with pytest.raises(ms.DefinitionError) as error:
        placed(element, **options).checked()
    return str(error.value)
