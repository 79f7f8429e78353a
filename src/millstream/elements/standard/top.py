"""Top: finds the best items overall, sorted in shards and merged (S4, Figure 1).

    counts -> NAME.keys -> NAME.sort (one element for each shard) -> NAME (one element)

Each event carries the latest value of an item. A map sends it to the sorter of the item's shard,
`hash(item) mod shards`. So all events of an item meet in one place, and the sorters share the load.
A sorter keeps the best of its items (`sort` explains what that guarantees if values can fall). When
its list has changed, it sends the list to the element that merges them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.codec import shard_of
from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.event_keys import ALL, Attribute, Keys, attributes_of, key_of, modules_of
from millstream.elements.placement import check_own, place
from millstream.elements.standard.merge import Merge
from millstream.elements.standard.sort import Sort, item_reader
from millstream.errors import DefinitionError
from millstream.model.app import AppDefinition
from millstream.model.event import Emit, Event, emit
from millstream.model.function import check_name, takes


@dataclass
class Top(Element):
    """Keeps the `size` best items. Emits `{"key", "top": [[item, value], ...], "exact"}`.

    `by` names the field with the value, `of` the field with the item ("@key": the event's key). By
    default there is one list, with the key "". `keys = { STREAM = "field" }` makes a list for each
    value of a field.
    """

    size: Configured[int] = 10
    by: Configured[str] = "count"
    of: Configured[str] = "key"
    shards: Configured[int] = 4
    above: Configured[float | None] = None
    spare: Configured[int] = 0

    def __post_init__(self) -> None:
        configuration(self)
        if self.shards < 1:
            raise DefinitionError(f"element Top: shards must be 1 or more; got {self.shards!r}")
        try:
            Sort(self.size, self.by, self.of, self.above, self.spare)
        except DefinitionError as error:
            raise DefinitionError(str(error).replace("element Sort", "element Top", 1)) from None

    def add_to(
        self,
        app: AppDefinition,
        *,
        keys: Keys = (),
        name: str | None = None,
        publishes: str | Iterable[str] = (),
        publish: str | None = None,
        ttl: Any = None,
        **placement: Any,
    ) -> None:
        """Adds the sorters and the element that merges their lists.

        `every` and `every_events` set when the sorters send their lists. The merged list follows at
        once. `ttl` applies to the items, `limit` to the sorters.
        """
        name = type(self).__name__ if name is None else name
        check_name(name, "element")
        where = f"element {name!r}"
        for option in ("keep", "memory"):
            if placement.get(option) is not None:
                raise DefinitionError(
                    f"{where}: {option} must be left out: a list is in several slates, and would "
                    "be wrong without one of them; size and ttl limit what is kept"
                )
        if isinstance(keys, str):
            keys = [keys]
        if isinstance(keys, Sequence):
            keys = dict.fromkeys(keys, ALL)
        attributes = tuple(attributes_of(keys, where).items())
        items, lists = f"{name}.items", f"{name}.lists"
        check_own(app, where, items, lists)
        sharding = Sharding(name, attributes, self.of, self.by, self.shards)
        app.map(*dict(attributes), publishes=items, name=f"{name}.keys")(sharding)
        try:
            sort = SortShard(self.size, VALUE, ITEM, self.above, self.spare, ttl)
        except DefinitionError as error:
            message = str(error).replace("element SortShard: item_ttl", f"{where}: ttl", 1)
            raise DefinitionError(message) from None
        try:
            sort.add_to(app, keys=[items], name=f"{name}.sort", publishes=lists, **placement)
        except DefinitionError as error:  # users know one element, not its updates
            text = re.sub(rf"^\w+ '{re.escape(name)}\.sort'[^:]*", where, str(error))
            raise DefinitionError(text) from error.__cause__
        place(app, Merge(self.size), keys=[lists], name=name, publishes=publishes, publish=publish)


ITEM, VALUE = "item", "value"
"""The fields of the events that the map sends to the sorters."""


class SortShard(Sort):
    """A sorter for one shard of the items of one list."""

    def _group(self) -> str:
        return self.key.partition("|")[2]


@dataclass(frozen=True)
class Sharding:
    """The map that sends an item and its value to the sorter of the item's shard."""

    element: str
    attributes: tuple[tuple[str, Attribute], ...]
    item_path: str
    value_path: str
    shards: int
    _groups: Mapping[str, Callable[[Event], str]] = field(init=False, compare=False, repr=False)
    _read: Callable[[Event], tuple[str, float]] = field(init=False, compare=False, repr=False)
    __signature__ = takes("event")

    def __post_init__(self) -> None:
        where = f"element {self.element!r}"
        groups = {
            stream: key_of(attribute, f"{where}, stream {stream!r}")
            for stream, attribute in self.attributes
        }
        object.__setattr__(self, "_groups", groups)
        object.__setattr__(self, "_read", item_reader(self.item_path, self.value_path, where))

    @property
    def __modules__(self) -> set[str]:
        return modules_of(self.attributes)

    def __call__(self, event: Event) -> Iterator[Emit]:
        item, value = self._read(event)
        shard = shard_of(self.element, item, self.shards)
        group = self._groups[event.stream](event)
        key = f"{shard}|{group}" if group else str(shard)
        yield emit(key=key, value={ITEM: item, VALUE: value})
