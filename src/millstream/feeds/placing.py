"""From feeds to the functions of the model.

    NAME.events -> NAME.split -> NAME.follow, NAME.unfollow, NAME.post, NAME.delete, NAME.view, ...
    NAME.post, NAME.delete, ... , NAME.told, NAME.more -> NAME.producers -> NAME.push, NAME.fanout,
                                                                           NAME.told, NAME.more
    NAME.follow, NAME.view, ... , NAME.push            -> NAME.consumers -> NAME.told
    NAME.fanout                                        -> NAME.fanouts

`NAME.told`, from consumers back to producers and from producers to those that aggregate them, and
`NAME.more`, from a producer to itself, close cycles: their events come in the next batch. All else
of a record happens in the batch that takes it in, so that whoever reads as of a batch knows: each
record before its place in the log has done all that a reader must see. For this no event may wait
in a function's queue, so both updates have a limit that is never reached: without one a hot key
would be given a share of each batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from functools import cached_property
from typing import Any

from millstream.errors import DefinitionError
from millstream.feeds.consumers import Consumers
from millstream.feeds.fanouts import FanOuts
from millstream.feeds.options import Options
from millstream.feeds.producers import Calming, Producers
from millstream.feeds.records import KINDS, OF_CONSUMER, OF_PRODUCER, checked
from millstream.model.app import App
from millstream.model.duration import microseconds, shown_duration
from millstream.model.event import Emit, Event, emit
from millstream.model.function import check_name, takes
from millstream.model.slate import Table

NO_LIMIT = 1 << 40


@dataclass(frozen=True)
class PlacedFeeds:
    """Feeds that have their place in an application: what the server knows them by."""

    options: Options
    name: str

    @classmethod
    def read(cls, name: str, described: Mapping[str, Any]) -> PlacedFeeds:
        """Them, from how they are described; DefinitionError if an option is unknown."""
        known = {field.name for field in fields(Options)}
        return cls(Options(**{key: one for key, one in described.items() if key in known}), name)

    @property
    def events(self) -> str:
        """The source of all records."""
        return f"{self.name}.events"

    @cached_property
    def producers(self) -> str:
        return f"{self.name}.producers"

    @cached_property
    def consumers(self) -> str:
        return f"{self.name}.consumers"

    @cached_property
    def fanouts(self) -> str:
        return f"{self.name}.fanouts"

    def described(self) -> dict[str, Any]:
        return {
            "kind": "feeds",
            "lasting": "feeds",
            **{name: _plain(value) for name, value in asdict(self.options).items()},
        }


def place(app: App, options: Options, name: str) -> None:
    """Add the functions of feeds."""
    check_name(name, "feeds")
    if app.order != "arrival":
        raise DefinitionError(
            f"feeds {name!r}: the application's order must be 'arrival', since a feed shows what "
            f"has come; got {app.order!r}"
        )
    placed = PlacedFeeds(options, name)
    app.place(name, placed)
    app.source(placed.events, key="kind", ts="at", unit="us")
    app.map(placed.events, publishes=[f"{name}.{kind}" for kind in KINDS], name=f"{name}.split")(
        Splitting(name)
    )
    of_producer = [f"{name}.{kind}" for kind in OF_PRODUCER]
    app.update(
        *of_producer,
        f"{name}.told",
        f"{name}.more",
        publishes=(f"{name}.push", f"{name}.fanout", f"{name}.more", f"{name}.told"),
        slate=Table,
        name=placed.producers,
        limit=NO_LIMIT,
        on_timer=Calming(options, name),
    )(Producers(options, name))
    of_consumer = [f"{name}.{kind}" for kind in OF_CONSUMER]
    app.update(
        *of_consumer,
        f"{name}.push",
        publishes=f"{name}.told",
        slate=Table,
        name=placed.consumers,
        limit=NO_LIMIT,
    )(Consumers(options, name))
    app.update(f"{name}.fanout", slate=Table, name=placed.fanouts, limit=NO_LIMIT)(FanOuts())


@dataclass(frozen=True)
class Splitting:
    """The map that gives each record to the stream of its kind, under whom it is of."""

    name: str
    __signature__ = takes("event")

    def __call__(self, event: Event) -> Iterator[Emit]:
        record = checked(event.value)
        key = record["consumer" if record["kind"] in OF_CONSUMER else "producer"]
        yield emit(f"{self.name}.{record['kind']}", key=key)


def _plain(value: Any) -> Any:
    """An option as it may be given again."""
    if isinstance(value, timedelta):
        return shown_duration(microseconds(value, "feeds"))
    return value
