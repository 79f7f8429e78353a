"""Adds feeds to an application, as functions of the model.

    NAME.events -> NAME.split -> NAME.follow, NAME.unfollow, NAME.post, NAME.delete, NAME.view, ...
    NAME.post, NAME.delete, ... , NAME.told, NAME.more -> NAME.producers -> NAME.push, NAME.fanout,
                                                                           NAME.told, NAME.more
    NAME.follow, NAME.view, ... , NAME.push            -> NAME.consumers -> NAME.told
    NAME.fanout                                        -> NAME.fanouts

`NAME.told` goes from consumers back to producers, and from producers to those that aggregate them.
`NAME.more` goes from a producer to itself. Both close cycles, so their events come in the next
batch. All other effects of a record happen in the batch that takes it in. So for a reader as of a
batch, each record before the batch's position in the log has had every effect that a reader must
see. This requires that no event waits in a function's queue. So the updates are `immediate`:
otherwise a hot key would only get a share of each batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from functools import cached_property
from typing import Any

from millstream.errors import DefinitionError
from millstream.feeds.options import FeedOptions
from millstream.feeds.records import KINDS, OF_CONSUMER, OF_PRODUCER, ConsumerRecord, read_record
from millstream.feeds.updates.consumers import Consumers
from millstream.feeds.updates.fanouts import FanOuts
from millstream.feeds.updates.producers import Calming, Producers
from millstream.model.app import AppDefinition
from millstream.model.duration import microseconds, shown_duration
from millstream.model.event import Emit, Event, emit
from millstream.model.function import check_name, takes
from millstream.model.slate import Table


@dataclass(frozen=True)
class PlacedFeeds:
    """Feeds as part of an application, in the form that the server uses."""

    options: FeedOptions
    name: str

    @classmethod
    def read(cls, name: str, described: Mapping[str, Any]) -> PlacedFeeds:
        """Restores feeds from their description. Raises DefinitionError if an option is invalid."""
        known = {field.name for field in fields(FeedOptions)}
        return cls(
            FeedOptions(**{key: value for key, value in described.items() if key in known}), name
        )

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


def place(app: AppDefinition, options: FeedOptions, name: str) -> None:
    """Adds the functions of feeds to `app`."""
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
        immediate=True,
        on_timer=Calming(options, name),
    )(Producers(options, name))
    of_consumer = [f"{name}.{kind}" for kind in OF_CONSUMER]
    app.update(
        *of_consumer,
        f"{name}.push",
        publishes=f"{name}.told",
        slate=Table,
        name=placed.consumers,
        immediate=True,
    )(Consumers(options, name))
    app.update(f"{name}.fanout", slate=Table, name=placed.fanouts, immediate=True)(FanOuts())


@dataclass(frozen=True)
class Splitting:
    """The map that routes each record to the stream of its kind, keyed by its consumer or
    producer."""

    name: str
    __signature__ = takes("event")

    def __call__(self, event: Event) -> Iterator[Emit]:
        record = read_record(event.value)
        key = record.consumer if isinstance(record, ConsumerRecord) else record.producer
        yield emit(f"{self.name}.{record.kind}", key=key)


def _plain(value: Any) -> Any:
    """Converts an option to a form that `FeedOptions` accepts again."""
    if isinstance(value, timedelta):
        return shown_duration(microseconds(value, "feeds"))
    return value
