"""GET /feeds: how the pairs of a network are split between push and pull, and what reads cost.

Counting goes through all producers, in a thread and in short reads. It is done only on request, and
not again until the last count is `KEPT` seconds old, or twenty times as old as counting took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from millstream.feeds.names import META, after, class_text, prefix
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.stored_rows import ProducerMeta
from millstream.messages.feeds import FeedNetwork, FeedsAnswer
from millstream.server.feeds.feed_networks import Networks, ServedFeeds
from millstream.server.http.answers import json_answer
from millstream.server.http.paths import query
from millstream.server.service import Service
from millstream.stores.reader import SlateReader
from millstream.stores.tables import BatchTables

KEPT = 5.0
SHARE = 20
"""Counting takes at most one part in this many of the time."""
TOGETHER = 500
"""Producers whose followers are counted in one read."""
BY = prefix("by")


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a network, about as of a batch."""

    batch: int
    producers: int
    consumers: int
    pairs: int
    pushed: int
    under_way: int


def counted(reader: SlateReader, placed: PlacedFeeds, consumers: int) -> Counted:
    """Counts a network. Producers and pairs are of one batch; the rest is counted right after."""
    if placed.producers not in reader.updates:  # the store is older than the feeds
        return Counted(reader.batch, 0, 0, 0, 0, 0)
    batch, tables = reader.entries(placed.producers, (META,))
    metas = {
        producer: msgspec.convert(table[META], ProducerMeta)
        for producer, table in tables.items()
        if META in table
    }
    followed = [producer for producer, meta in metas.items() if meta.counts.followers]
    pushed = 0
    for begin in range(0, len(followed), TOGETHER):
        producers = followed[begin : begin + TOGETHER]
        needs = [(producer, metas[producer].need) for producer in producers]
        pushed += reader.read_tables(_counting(placed, needs))
    pairs = sum(metas[producer].counts.followers for producer in followed)
    fan_outs = reader.read_tables(lambda tables: _length(tables, placed.fanouts, "", ""))
    return Counted(batch, len(tables), consumers, pairs, min(pushed, pairs), fan_outs)


def _counting(
    placed: PlacedFeeds, producers: Sequence[tuple[str, int]]
) -> Callable[[BatchTables], int]:
    """Returns a function that counts the followers of producers from a class up: those on push."""

    def count(tables: BatchTables) -> int:
        return sum(
            _length(tables, placed.producers, producer, BY + class_text(need), after(BY))
            for producer, need in producers
        )

    return count


def _length(
    tables: BatchTables, update: str, key: str, start: str, stop: str = "\U0010ffff"
) -> int:
    return sum(1 for _ in tables.scan(update, key, start, stop))


class FeedOverview:
    """The overview of all feeds of a server."""

    def __init__(self, service: Service, networks: Networks) -> None:
        self._service, self._networks = service, networks
        self._counting = asyncio.Lock()
        self._counted: dict[str, Counted] = {}
        self._due: dict[str, float] = {}

    async def feeds(self, request: Request) -> Response:
        query(request, ())
        networks = self._networks.all()
        return json_answer(
            FeedsAnswer({name: await self._overview(network) for name, network in networks.items()})
        )

    async def _overview(self, network: ServedFeeds) -> FeedNetwork:
        async with self._counting:  # requests that come meanwhile get the same count
            if time.monotonic() >= self._due.get(network.name, 0.0):
                await self._count(network)
        known, options = self._counted[network.name], network.placed.options
        costs = network.costs.overview()
        return FeedNetwork(
            coherency=options.coherency,
            policy=options.policy,
            decide=options.decide,
            producers=known.producers,
            consumers=known.consumers,
            pairs=known.pairs,
            pushed=known.pushed,
            pulled=known.pairs - known.pushed,
            under_way=known.under_way,
            high=costs.high,
            low=costs.low,
            ratio=costs.ratio,
            reads=costs.reads,
            latency=costs.latency,
            batch=known.batch,
        )

    async def _count(self, network: ServedFeeds) -> None:
        started, store = time.monotonic(), self._service.store
        consumers = store.progress().slates.get(network.placed.consumers, 0)
        with store.lease() as reader:
            self._counted[network.name] = await self._service.in_thread(
                counted, reader, network.placed, consumers
            )
        now = time.monotonic()
        self._due[network.name] = now + max(KEPT, SHARE * (now - started))


class FeedMetrics(Collector):
    """The number and latency of reads of feeds, for Prometheus."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks

    def collect(self) -> Iterator[Metric]:
        reads = CounterMetricFamily(
            "millstream_feed_reads", "Reads of pages of feeds.", labels=["feeds"]
        )
        times = GaugeMetricFamily(
            "millstream_feed_read_quantile_seconds",
            "Latency of the last reads of feeds.",
            labels=["feeds", "quantile"],
        )
        for name, network in self._networks.all().items():
            costs = network.costs.overview()
            reads.add_metric([name], costs.reads)
            latency = costs.latency
            for quantile, seconds in (
                ("0.5", latency.p50),
                ("0.95", latency.p95),
                ("0.99", latency.p99),
            ):
                if seconds is not None:
                    times.add_metric([name, quantile], seconds)
        yield reads
        yield times
