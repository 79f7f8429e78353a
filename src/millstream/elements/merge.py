"""Merge: one list of lists, each from another element (S4, Figure 1: the MergePE).

Lists that arrive in the same microsecond, as those that are sent at the end of a slot do, are
merged together: a timer for that microsecond fires after all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.elements.element import Configured, Element, configuration
from millstream.elements.sort import Entry, rank
from millstream.errors import DefinitionError, InputError
from millstream.model.event import Emit, Event, Forget, SetTimer, Timer, forget, timer

MERGE = "merge"


@dataclass
class Merge(Element):
    """Merges the lists that `sort` elements send, of each the latest.

    Emits `{"key", "top": [[item, value], ...], "exact"}` when the merged list has changed. It is
    exact if those it is made of are, as far as it needs them. An item that is in several lists has
    the greatest of its values.
    """

    size: Configured[int] = 10
    top: list[Entry] = field(default_factory=list)
    exact: bool = True
    lists: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each element sent last, and when, by its stream and its key."""

    def __post_init__(self) -> None:
        configuration(self)
        if self.size < 1:
            raise DefinitionError(f"element Merge: size must be 1 or more; got {self.size!r}")

    def process_event(self, event: Event) -> Iterator[SetTimer]:
        given = event.value
        if not _is_list(given):
            shown = repr(given)
            raise InputError(
                "element Merge: the value must be a list that an element 'sort' sent; got "
                f"{shown if len(shown) <= 60 else shown[:57] + '...'}"
            )
        sender, sent = f"{event.stream} {given['key']}", given.get("sent", 0)
        held = self.lists.get(sender)
        if held is not None and held["ts"] == event.ts and held["sent"] > sent:
            return  # a later one of the same microsecond came first
        left_out = given.get("left_out")
        one = {"top": given["top"], "left_out": left_out, "sent": sent, "ts": event.ts}
        self.lists[sender] = one
        yield timer(at=event.ts, name=MERGE)

    def on_timer(self, timed: Timer) -> Iterator[Emit | Forget]:
        before = self.top, self.exact
        self.top, self.exact = self._merged()
        if before != (self.top, self.exact):
            yield from self.output()
        self.lists = {key: one for key, one in self.lists.items() if one["top"] or one["left_out"]}
        if not self.lists:
            yield forget()

    def output(self) -> Iterator[Emit]:
        yield from self.to_all({"key": self.key, "top": self.top, "exact": self.exact})

    def _merged(self) -> tuple[list[Entry], bool]:
        best: dict[str, Any] = {}
        for one in self.lists.values():
            for item, value in one["top"]:
                best[item] = max(value, best.get(item, value))
        items = sorted(best, key=lambda item: rank(item, best[item]))[: self.size]
        top = [[item, best[item]] for item in items]
        left_out = [one["left_out"] for one in self.lists.values() if one["left_out"]]
        exact = not left_out or (
            len(top) == self.size
            and all(rank(*top[-1]) <= rank(item, value) for value, item in left_out)
        )
        return top, exact


def _is_list(given: Any) -> bool:
    """Whether a value is as `sort` sends it: one that is not would spoil all later merges."""
    if not (isinstance(given, dict) and isinstance(given.get("key"), str)):
        return False
    top, left_out = given.get("top"), given.get("left_out")
    if not (isinstance(top, list) and isinstance(left_out, list | None)):
        return False
    entries = top if left_out is None else [*top, left_out[::-1]]
    return isinstance(given.get("sent", 0), int) and all(map(_is_entry, entries))


def _is_entry(given: Any) -> bool:
    if not (isinstance(given, list) and len(given) == 2 and isinstance(given[0], str)):
        return False
    return isinstance(given[1], int | float) and not isinstance(given[1], bool)
