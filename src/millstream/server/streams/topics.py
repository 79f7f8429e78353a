"""Sources that are Kafka topics: the application's backlog in them, and sending records to them.

An idempotency key works as it does in an event log. Before the records of a request with a key are
sent, the request is recorded in a log of the store (`SOURCE.requests`): its key, the digest of its
body, and the end offsets of the topic. A repeated request finds that record. If this process has
seen the acknowledgements, it answers at once. If not, because a server died in between, it searches
the topic from those offsets for the request's records, and sends the missing ones.

Each topic is followed by a thread, from the first request for it. Kafka's library may be missing
where a server runs: then no backlog is known, and no record can be sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from millstream.description import SourceDescription
from millstream.errors import InputError, LogError
from millstream.kafka.topic import SourceTopic, topic_at
from millstream.kafka.topic_producer import (
    NUMBER,
    REQUEST,
    NewRecord,
    TopicProducer,
    found_records,
)
from millstream.kafka.topic_watch import TopicWatch
from millstream.log.writer import Appended, Entry
from millstream.server.service import Service
from millstream.server.streams.appender import Appenders
from millstream.server.streams.numbered_records import Backlog, Numbered
from millstream.stores.home import log_of
from millstream.stores.progress import SourceProgress

WATCH_SECONDS = 0.25
KEYS = 1_000_000
"""Idempotency keys whose acknowledgements this process remembers."""


class TopicRequest(msgspec.Struct, frozen=True):
    """The record of a request that is written before its records are sent."""

    records: int
    begin: list[int]
    """The end offset of each partition; the request's records come after it."""


class Topics:
    """The topics of a server's sources. Used on the event loop."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._watches: dict[SourceTopic, TopicWatch] = {}
        self._producers: dict[SourceTopic, TopicProducer] = {}
        self._acknowledged: dict[tuple[SourceTopic, str], None] = {}
        self._going: dict[tuple[SourceTopic, str], asyncio.Future[None]] = {}

    def backlog(self, source: SourceDescription, taken: SourceProgress) -> Backlog | None:
        """Returns the unprocessed part of a source's topic; None if that is not known."""
        topic = topic_at(source.address)
        watch = None if topic is None else self._watch(topic)
        if watch is None or watch.ends is None:
            return None
        position = list(taken.position or ())
        position += watch.ends.begins[len(position) :]
        pairs = zip(position, watch.ends.ends, strict=False)
        events = sum(max(0, end - at) for at, end in pairs)
        oldest = watch.stamp_at(position) if events else None
        return Backlog(int(events * taken.record_bytes), events, oldest)

    async def send(
        self,
        service: Service,
        appenders: Appenders,
        source: SourceDescription,
        entry: Entry,
        keys: Sequence[bytes | None],
    ) -> Appended:
        """Sends the lines of an entry, each with its key; all replicas have them when this returns.

        Raises TagMismatch if the entry's tag was used for other lines, and LogError if the brokers
        did not accept them.
        """
        topic = topic_at(source.address)
        assert topic is not None
        if not entry.tag:
            await self._sent(topic, entry, keys, range(entry.count))
            return Appended(0, entry.count, False)
        request = topic, entry.tag
        while (running := self._going.get(request)) is not None:
            await asyncio.shield(running)
        self._going[request] = asyncio.get_running_loop().create_future()
        try:
            return await self._send_once(service, appenders, source, topic, entry, keys)
        finally:
            self._going.pop(request).set_result(None)

    async def _send_once(
        self,
        service: Service,
        appenders: Appenders,
        source: SourceDescription,
        topic: SourceTopic,
        entry: Entry,
        keys: Sequence[bytes | None],
    ) -> Appended:
        watch = self._watch(topic)
        if watch is None or not await service.in_thread(watch.wait, 10.0) or watch.ends is None:
            raise LogError(f"{topic.where}: the brokers do not answer")
        path = log_of(self._store, f"{source.name}.requests")
        request = TopicRequest(entry.count, list(watch.ends.ends))
        intent = Entry.of([msgspec.json.encode(request)], entry.tag, entry.digest)
        recorded = await appenders.of(path).append(intent, len(intent.payload))
        missing: Sequence[int] = range(entry.count)
        if recorded.repeated and (topic, entry.tag) not in self._acknowledged:
            first = await service.in_thread(_recorded, path, recorded.first)
            sent = await service.in_thread(found_records, topic, entry.tag, first.begin)
            missing = [number for number in missing if number not in sent]
        elif recorded.repeated:
            missing = ()
        await self._sent(topic, entry, keys, missing)
        self._acknowledged[topic, entry.tag] = None
        if len(self._acknowledged) > KEYS:
            del self._acknowledged[next(iter(self._acknowledged))]
        return Appended(0, entry.count, recorded.repeated and not missing)

    async def _sent(
        self,
        topic: SourceTopic,
        entry: Entry,
        keys: Sequence[bytes | None],
        numbers: Sequence[int],
    ) -> None:
        if not numbers:
            return
        tag, lines = entry.tag.encode(), entry.lines
        records = [
            NewRecord(
                keys[number],
                lines[number],
                [(REQUEST, tag), (NUMBER, str(number).encode())] if tag else [],
            )
            for number in numbers
        ]
        producer = self._producers.get(topic)
        if producer is None:
            try:
                producer = self._producers[topic] = TopicProducer(topic)
            except InputError as error:  # no library here, or no secret
                raise LogError(str(error)) from None
        # Shielded: records are sent even if the client disconnects meanwhile.
        await asyncio.shield(asyncio.wrap_future(producer.send(records)))

    def _watch(self, topic: SourceTopic) -> TopicWatch | None:
        watch = self._watches.get(topic)
        if watch is None:
            watch = TopicWatch(topic, busy_seconds=WATCH_SECONDS, idle_seconds=WATCH_SECONDS)
            try:
                watch.start()
            except InputError:
                return None  # no library, or no secret here
            self._watches[topic] = watch
        return watch

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        for producer in self._producers.values():
            await loop.run_in_executor(None, producer.close)
        for watch in self._watches.values():
            await loop.run_in_executor(None, watch.close)


def _recorded(path: Path, number: int) -> TopicRequest:
    """Reads the record of a request from its log."""
    log = Numbered(path)
    try:
        lines = log.lines(number, 1, 1 << 20)
        if not lines:
            raise LogError(f"log {path}: the request's record {number} is gone")
        return msgspec.json.decode(lines[0], type=TopicRequest)
    finally:
        log.close()
