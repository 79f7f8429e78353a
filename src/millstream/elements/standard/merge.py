"""Merge: merges the lists of several elements into one (S4, Figure 1: the MergePE).

Lists that arrive in the same microsecond, such as those sent at the end of a slot, are merged
together: a timer for that microsecond fires after all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.standard.sort import Entry, rank
from millstream.errors import DefinitionError, InputError
from millstream.model.event import Emit, Event, Forget, SetTimer, Timer, forget, timer
from millstream.model.path import shortened

MERGE = "merge"


@dataclass
class Merge(Element):
    """Merges the latest list of each `sort` element.

    Emits `{"key", "top": [[item, value], ...], "exact"}` when the merged list has changed. It is
    exact if no item that was left out of a list could belong in it. An item that is in several
    lists has its greatest value.
    """

    size: Configured[int] = 10
    top: list[Entry] = field(default_factory=list)
    exact: bool = True
    lists: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The latest list of each element with its time, by the element's stream and key."""

    def __post_init__(self) -> None:
        configuration(self)
        if self.size < 1:
            raise DefinitionError(f"element Merge: size must be 1 or more; got {self.size!r}")

    def process_event(self, event: Event) -> Iterator[SetTimer]:
        value = event.value
        if not _is_list(value):
            raise InputError(
                "element Merge: the value must be a list that an element 'sort' sent; got "
                f"{shortened(value)}"
            )
        sender, sent = f"{event.stream} {value['key']}", value.get("sent", 0)
        latest = self.lists.get(sender)
        if latest is not None and latest["ts"] == event.ts and latest["sent"] > sent:
            return  # a newer list of the same microsecond has arrived before
        left_out = value.get("left_out")
        entry = {"top": value["top"], "left_out": left_out, "sent": sent, "ts": event.ts}
        self.lists[sender] = entry
        yield timer(at=event.ts, name=MERGE)

    def on_timer(self, timed: Timer) -> Iterator[Emit | Forget]:
        before = self.top, self.exact
        self.top, self.exact = self._merged()
        if before != (self.top, self.exact):
            yield from self.output()
        self.lists = {
            key: entry for key, entry in self.lists.items() if entry["top"] or entry["left_out"]
        }
        if not self.lists:
            yield forget()

    def output(self) -> Iterator[Emit]:
        yield from self.to_all({"key": self.key, "top": self.top, "exact": self.exact})

    def _merged(self) -> tuple[list[Entry], bool]:
        best: dict[str, Any] = {}
        for entry in self.lists.values():
            for item, value in entry["top"]:
                best[item] = max(value, best.get(item, value))
        items = sorted(best, key=lambda item: rank(item, best[item]))[: self.size]
        top = [[item, best[item]] for item in items]
        left_out = [entry["left_out"] for entry in self.lists.values() if entry["left_out"]]
        exact = not left_out or (
            len(top) == self.size
            and all(rank(*top[-1]) <= rank(item, value) for value, item in left_out)
        )
        return top, exact


def _is_list(value: Any) -> bool:
    """True if a value has the form that `sort` sends. Any other would break all later merges."""
    if not (isinstance(value, dict) and isinstance(value.get("key"), str)):
        return False
    top, left_out = value.get("top"), value.get("left_out")
    if not (isinstance(top, list) and isinstance(left_out, list | None)):
        return False
    entries = top if left_out is None else [*top, left_out[::-1]]
    return isinstance(value.get("sent", 0), int) and all(map(_is_entry, entries))


def _is_entry(value: Any) -> bool:
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)):
        return False
    return isinstance(value[1], int | float) and not isinstance(value[1], bool)
