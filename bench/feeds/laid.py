"""A network of follows as it is in the store once all has settled, made without running batches.

The functions of feeds are called one event after the other, over tables in memory; what they leave
is written to the shards as one batch. It is what the engine comes to over the same records (a test
compares them), in a fraction of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from bench.feeds.network import HOUR, Network
from millstream.codec import decode_value, encode_value, shard_of
from millstream.feeds.names import META
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.rates import SECOND, Rate
from millstream.feeds.records import OF_CONSUMER
from millstream.feeds.stored_rows import ProducerMeta
from millstream.feeds.updates.consumers import Consumers
from millstream.feeds.updates.fanouts import FanOuts
from millstream.feeds.updates.producers import Producers
from millstream.model.event import INHERITED, Emit, Event
from millstream.model.slate import NoEntries, Table
from millstream.stores.contract import Changes, Fence, Store
from millstream.stores.layout import pack_slate, slates_of, table_of

Record = dict[str, Any]
NOW = 1_800_000_000 * SECOND
"""When the network is as it is laid: the measured part begins here."""
DEPTHS = range(10, 31)
"""Posts that producers have, each another number of them: enough for feeds to be full."""
FEW = range(4, 5)
"""The same where it does not matter."""
LAST = "o0"
STEPS = 32
"""By which a rate is made known."""


class Laying:
    """Takes records in, each to its end."""

    def __init__(self, placed: PlacedFeeds) -> None:
        self.placed = placed
        name, options = placed.name, placed.options
        producers, consumers = Producers(options, name), Consumers(options, name)
        self._functions = {
            placed.producers: producers,
            placed.consumers: consumers,
            placed.fanouts: FanOuts(),
        }
        self._takers = {
            f"{name}.push": placed.consumers,
            f"{name}.told": placed.producers,
            f"{name}.more": placed.producers,
            f"{name}.fanout": placed.fanouts,
        }
        self.tables: dict[str, dict[str, Table]] = {update: {} for update in self._functions}
        self.last: dict[tuple[str, str], int] = {}

    def take(self, records: Iterable[Record]) -> None:
        """Take records in, in their order."""
        placed, name = self.placed, self.placed.name
        for record in records:
            kind, at = record["kind"], record["at"]
            consumer = kind in OF_CONSUMER
            update = placed.consumers if consumer else placed.producers
            key = record["consumer" if consumer else "producer"]
            self._run(update, Event(f"{name}.{kind}", at + 1, key, record))

    def _run(self, update: str, event: Event) -> None:
        due = deque([(update, event)])
        while due:
            update, event = due.popleft()
            table = self.tables[update].get(event.key)
            if table is None:
                table = Table(NoEntries(), encode_value, decode_value)
                self.tables[update][event.key] = table
            emitted: Iterator[Emit] | None = self._functions[update](event, table)  # type: ignore[operator]
            for stream, key, value, _ in emitted or ():
                taker = self._takers[str(stream)]
                key = key if isinstance(key, str) else event.key
                value = event.value if value is INHERITED else decode_value(encode_value(value))
                due.append((taker, Event(str(stream), event.ts + 1, key, value)))
            table.settle()
            known = update, event.key
            self.last[known] = max(event.ts, self.last.get(known, 0))

    def know_rate(self, key: str, rate: Rate) -> None:
        """Let a producer's rate be known as if it had posted for long."""
        table = self.tables[self.placed.producers][key]
        table[META] = replace(convert(table[META], ProducerMeta), rate=rate.rounded())
        table.settle()

    def write(self, store: Store, batch: int = 0) -> None:
        """Commit it all as one batch."""
        changes: list[dict[str, Changes]] = [{} for _ in range(store.shards)]
        for update, tables in self.tables.items():
            rows: list[dict[bytes, bytes | None]] = [{} for _ in range(store.shards)]
            slates = slates_of(update)
            for key, table in tables.items():
                into = rows[shard_of(update, key, store.shards)]
                into[slates + key.encode()] = pack_slate(self.last[update, key], b"", {})
                prefix = table_of(update, key)
                for entry, value in table.changes().items():
                    if value is not None:
                        into[prefix + entry.encode()] = value
            for number, of in enumerate(rows):
                changes[number][update] = of
        for number, of_shard in enumerate(changes):
            store.shard(number).commit(Fence(1, batch, 1), of_shard)


def producer(number: int) -> str:
    return f"p{number}"


def consumer(number: int) -> str:
    return f"c{number}"


def lay(
    laying: Laying,
    of: Network,
    wholesale: Iterable[int] = (),
    now: int = NOW,
    depths: range = DEPTHS,
) -> None:
    """All that leads to a network: posts at each producer's pace, looks that say how often each
    consumer looks, and the follows. Of `wholesale` consumers every producer is pushed."""
    memory = laying.placed.options.memory_us
    posts = sorted(_posts(of, now, depths), key=lambda post: int(post["at"]))
    laying.take(post for post in posts if post["id"] != LAST)
    for number, rate in enumerate(of.event_rates.tolist()):
        laying.know_rate(producer(number), known_rate(rate, memory, _last(number, rate, now)))
    laying.take(post for post in posts if post["id"] == LAST)
    looks = dict(enumerate(of.query_rates.tolist()))
    laying.take(views(looks, memory, now - 2 * SECOND, wholesale))
    pairs = zip(of.producer.tolist(), of.consumer.tolist(), strict=True)
    laying.take(follows(pairs, now - 3 * SECOND // 2))


def follows(pairs: Iterable[tuple[int, int]], at: int) -> Iterator[Record]:
    """Follows of producers and consumers by their numbers, one a microsecond."""
    for number, (p, c) in enumerate(pairs):
        known = {"consumer": consumer(c), "producer": producer(p)}
        yield {"kind": "follow", "at": at + number, **known}


def views(
    rates: Mapping[int, float], memory: int, at: int, wholesale: Iterable[int] = ()
) -> Iterator[Record]:
    """Looks that say at once how often consumers look, an hour."""
    one = Rate()
    one.add(at, 1.0, memory)
    unit = one.per_second(memory) * HOUR
    whole = frozenset(wholesale)
    for order, (number, rate) in enumerate(rates.items()):
        view = {
            "kind": "view",
            "at": at + order,
            "consumer": consumer(number),
            "count": rate / unit,
        }
        yield {**view, "wholesale": True} if number in whole else view


def known_rate(rate: float, memory: int, until: int) -> Rate:
    """Returns the known rate of a producer that has long posted at a rate, just before its post at
    `until`."""
    pace = HOUR * SECOND / rate
    step = max(2 * memory / STEPS, pace)
    found = Rate()
    for back in range(STEPS - 1, -1, -1):
        found.add(int(until - pace - back * step), step / pace, memory, flashes=False)
    found.count *= rate / HOUR / found.per_second(memory)  # posts in lumps are counted a bit low
    return found


def _posts(of: Network, now: int, depths: range) -> Iterator[Record]:
    for number, rate in enumerate(of.event_rates.tolist()):
        step = HOUR * SECOND / rate
        last = _last(number, rate, now)
        for back in range(depths[number * 8 % len(depths)]):
            at = last - int(back * step)
            one = {"kind": "post", "at": at, "producer": producer(number), "value": TEXT}
            yield {**one, "id": f"o{back}"}


def _last(number: int, rate: float, now: int) -> int:
    """When a producer posted last: any time within its pace."""
    return now - 2 * SECOND - int(HOUR * SECOND / rate * (number % 61 + 1) / 62)


TEXT = {"text": "What is going on, in about as many characters as people write on most days."}
"""The text of the posts."""
