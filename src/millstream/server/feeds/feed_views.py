"""Counts views of feeds in memory, and sends the counts to the application now and then.

A request for the first page of a feed is a view; further pages by its cursor are not. The views of
a consumer are collected into one record of kind `view` with their `count`, at most every `EVERY`
seconds. The record also has the `flow` of the feed: the items per second on its page. Applications
that decide for whole consumers use it (Feeding Frenzy, Lemma 2).

The counts are not guaranteed: a server that is killed loses the views of a few seconds. A server
that is stopped sends them first. While they cannot be sent they are kept, for at most `MOST`
consumers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from millstream.errors import MillstreamError
from millstream.server.http.answers import Refusal

logger = logging.getLogger("millstream.server")

EVERY = 5.0
MOST = 100_000
"""Consumers whose views are kept."""
TOGETHER = 5_000
"""Records that are appended at once."""
LEAST_SPAN = 1_000_000
"""The least time span assumed for a page, in microseconds, so that a burst is no large flow."""

Append = Callable[[str, list[dict[str, Any]]], Awaitable[None]]
"""Appends records to the log of the feeds of a name."""


def flow(times: list[int], now: int) -> float:
    """Returns the items per second of a page with items of these times.

    >>> flow([90_000_000, 80_000_000], 100_000_000), flow([], 5), flow([7], 7)
    (0.1, 0.0, 1.0)
    """
    return len(times) / (max(LEAST_SPAN, now - min(times)) / 1e6) if times else 0.0


class Views:
    """The views of all feeds of a server that were not sent yet."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}
        """(count, flow) by the name of the feeds and the consumer."""
        self._task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._failing = False
        self.lost = 0
        """Views that were dropped."""

    def count(self, feeds: str, consumer: str, flow: float) -> None:
        """Counts one view of a consumer, whose feed now has the flow `flow`."""
        key = feeds, consumer
        known = self._counts.get(key)
        if known is None and len(self._counts) >= MOST:
            self.lost += 1
            return
        self._counts[key] = (1 if known is None else known[0] + 1), flow

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Sends the remaining counts and stops."""
        self._stopped.set()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task = None

    async def tell(self) -> None:
        """Appends the counts to the logs; those that cannot be appended are kept."""
        counts, self._counts = self._counts, {}
        by_feeds: dict[str, list[tuple[str, int, float]]] = {}
        for (feeds, consumer), (count, flow) in counts.items():
            by_feeds.setdefault(feeds, []).append((consumer, count, flow))
        for feeds, views in by_feeds.items():
            for begin in range(0, len(views), TOGETHER):
                await self._tell(feeds, views[begin : begin + TOGETHER])

    async def _tell(self, feeds: str, views: list[tuple[str, int, float]]) -> None:
        records = [
            {"kind": "view", "consumer": consumer, "count": count, "flow": round(flow, 6)}
            for consumer, count, flow in views
        ]
        try:
            await self._append(feeds, records)
            self._failing = False
        except (Refusal, MillstreamError, OSError) as error:
            if not self._failing:  # logged once
                logger.warning("views of feeds %r cannot be sent: %s", feeds, error)
            self._failing = True
            self._keep(feeds, views)

    def _keep(self, feeds: str, views: list[tuple[str, int, float]]) -> None:
        for consumer, count, flow in views:
            known = self._counts.get((feeds, consumer))
            if known is None and len(self._counts) >= MOST:
                self.lost += count
            else:
                self._counts[feeds, consumer] = (
                    (count, flow) if known is None else (known[0] + count, known[1])
                )

    async def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                async with asyncio.timeout(EVERY):
                    await self._stopped.wait()
            except TimeoutError:
                pass
            await self.tell()
