"""How often feeds are looked at: counted in memory, and told to the application now and then.

Looking at the first page of a feed is a view; what follows by its cursor is not another. Views of a
consumer gather, and become one record of kind `view` with their `count`, at most every `EVERY`
seconds. With them goes the `flow` of the feed, the items a second that its page shows, by which
an application decides that does so for whole consumers (Feeding Frenzy, Lemma 2).

What is counted is not promised to anybody: a server that is killed loses the views of some seconds.
One that stops tells them. While they cannot be told they are kept, for `MOST` consumers at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from millstream.errors import MillstreamError
from millstream.server.answers import Refusal

logger = logging.getLogger("millstream.server")

EVERY = 5.0
MOST = 100_000
"""Consumers whose views are kept."""
TOGETHER = 5_000
"""Records that are appended at once."""
LEAST_SPAN = 1_000_000
"""Microseconds that items are taken to span at least: a page of a burst is no flow."""

Append = Callable[[str, list[dict[str, Any]]], Awaitable[None]]
"""Appends records to the log of the feeds of a name."""


def flow(times: list[int], now: int) -> float:
    """Items a second, of a page with items of these times.

    >>> flow([90_000_000, 80_000_000], 100_000_000), flow([], 5), flow([7], 7)
    (0.1, 0.0, 1.0)
    """
    return len(times) / (max(LEAST_SPAN, now - min(times)) / 1e6) if times else 0.0


class Views:
    """The views that were not told yet, of all feeds of a server."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._counts: dict[tuple[str, str], tuple[int, float]] = {}
        """By the name of the feeds and the consumer."""
        self._task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._failing = False
        self.lost = 0
        """Views that were given up."""

    def count(self, feeds: str, consumer: str, of: float) -> None:
        """One more view of a consumer, whose feed has this flow now."""
        key = feeds, consumer
        known = self._counts.get(key)
        if known is None and len(self._counts) >= MOST:
            self.lost += 1
            return
        self._counts[key] = (1 if known is None else known[0] + 1), of

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Tell what was counted, for the last time."""
        self._stopped.set()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task = None

    async def tell(self) -> None:
        """Append what was counted; what cannot be is kept."""
        counts, self._counts = self._counts, {}
        by_feeds: dict[str, list[tuple[str, int, float]]] = {}
        for (feeds, consumer), (count, of) in counts.items():
            by_feeds.setdefault(feeds, []).append((consumer, count, of))
        for feeds, views in by_feeds.items():
            for begin in range(0, len(views), TOGETHER):
                await self._tell(feeds, views[begin : begin + TOGETHER])

    async def _tell(self, feeds: str, views: list[tuple[str, int, float]]) -> None:
        records = [
            {"kind": "view", "consumer": consumer, "count": count, "flow": round(of, 6)}
            for consumer, count, of in views
        ]
        try:
            await self._append(feeds, records)
            self._failing = False
        except (Refusal, MillstreamError, OSError) as error:
            if not self._failing:  # said once
                logger.warning("views of feeds %r cannot be told: %s", feeds, error)
            self._failing = True
            self._keep(feeds, views)

    def _keep(self, feeds: str, views: list[tuple[str, int, float]]) -> None:
        for consumer, count, of in views:
            known = self._counts.get((feeds, consumer))
            if known is None and len(self._counts) >= MOST:
                self.lost += count
            else:
                self._counts[feeds, consumer] = (
                    (count, of) if known is None else (known[0] + count, known[1])
                )

    async def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                async with asyncio.timeout(EVERY):
                    await self._stopped.wait()
            except TimeoutError:
                pass
            await self.tell()
