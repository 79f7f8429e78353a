"""A processing element: a small class whose fields are its slate (S4, sections II.B and III).

    @dataclass
    class QueryCounter(ms.Element):
        count: int = 0

        def process_event(self, event):
            self.count += 1

        def output(self):
            yield self.publish({"query": self.key, "count": self.count})

    app.add(QueryCounter(), keys={"queries": "query"}, every="10m", publish="counts")

The object that is added is the *prototype*. Its configuration (fields marked `Configured`) is the
same for every key. It is not stored: a changed application changes it. The other fields are the
slate: each key has its own, which begins with the fields' defaults. An element uses nothing but
maps, updates, slates and timers: see `placement`.
"""

from __future__ import annotations

from typing import Any

from millstream.elements.element_base import Configured, ElementBase
from millstream.elements.placement import check_placement, place
from millstream.model.app import AppDefinition

__all__ = ["Configured", "Element"]


class Element(ElementBase):
    """The base of processing elements. A subclass with fields is a dataclass.

    `key` and `time` are set before each call. `key` is the key of this element. `time` is the `ts`
    of the current event; in `output`, the end of the period.
    """

    def add_to(self, app: AppDefinition, **placement: Any) -> None:
        """Adds the functions of this element to an application. `placement.place` has the
        options."""
        check_placement(self, placement)
        place(app, self, **placement)
