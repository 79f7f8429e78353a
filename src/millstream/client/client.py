"""The client: sends events, reads slates and records.

Every call may be retried (see `wire`), and every event counts once: each batch of events has
its own idempotency key. `watch` and `tail` reconnect by themselves and continue where they were.
Threads may share a client; an iterator belongs to the thread that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar
from uuid import uuid4

import httpx
import msgspec

from millstream.client.batches import Batch, as_lines, batches, encode_event, encoded
from millstream.client.event_stream import listen
from millstream.client.feeds import FeedsClient
from millstream.client.values import Gap, Record, Refused, Sent, Slate
from millstream.client.wire import Wire, path_of
from millstream.counted_nouns import counted, verb
from millstream.errors import ClientError, CodecError
from millstream.messages.letters import (
    ActionRetryAnswer,
    ActionRetryQuestion,
    LetterKind,
    Retried,
    RetryQuestion,
)
from millstream.messages.slates import SlateAnswer, SlateEvent, SlateLine, SlatePage, UpdatesAnswer
from millstream.messages.status import Status
from millstream.messages.streams import PostAnswer, RecordGap, RecordPage, StreamRow, StreamsAnswer

T = TypeVar("T")
Progress = Callable[[Sent], None]
DEFAULT_URL = "http://127.0.0.1:8470"
PAGE = 1000
KEPT_REFUSALS = 1000
"""The maximum number of refused events that one call reports. Further ones are only counted, so
that the memory of a long call is bounded."""


class Client:
    """A Millstream server.

            with Client() as client:
                client.send("checkins", [{"user": "ann", "venue": "Walmart"}])
                print(client.get("count", "Walmart"))

    `url` may name several servers of one application, as a list or separated by commas. If one does
    not answer, the client goes on with the next. `token` is the token that the server was started
    with, if any. `timeout` is in seconds. `retries` is the maximum number of retries in a row after
    a failure, at each server; None retries for ever. If you made the server's https
    certificate yourself, name its file in the environment variable SSL_CERT_FILE.
    """

    def __init__(
        self,
        url: str | Sequence[str] = DEFAULT_URL,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int | None = 8,
    ) -> None:
        self._wire = Wire(url, token, timeout, retries)
        self.feeds = FeedsClient(self._wire)
        """Follow, post and read feeds, if the application has them."""
        self._updates: set[str] = set()
        """The updates that are known to exist: for these a 404 means that there is no slate."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._wire.close()

    @property
    def url(self) -> str:
        """The address of the current server; of several, the one that answered last."""
        return self._wire.url

    # sending events

    def send(
        self,
        stream: str,
        events: Iterable[Any],
        *,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Sent:
        """Sends events, each a JSON value. Returns when they are on the server's disk.

        They are sent in batches of at most 500 events and 1 MiB, as a generator produces them. With
        an `idempotency_key` the whole call may be repeated with the same events, and counts once.
        Without one, a batch counts once however often this call has to send it. `progress` is
        called with the result of each batch.
        """
        if isinstance(events, Mapping | str | bytes):
            raise CodecError(
                f"send takes many events, as in [event]; got one {type(events).__name__}: "
                "use send_one for it"
            )
        return self._send(stream, encoded(events), idempotency_key, progress)

    def send_lines(
        self,
        stream: str,
        lines: Iterable[bytes | str | None],
        *,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Sent:
        """Like `send`, for events that are JSON text, one on each line. Blank lines are skipped.

        A None among the lines sends those before it at once.
        """
        return self._send(stream, as_lines(lines), idempotency_key, progress)

    def send_one(self, stream: str, event: Any, *, idempotency_key: str | None = None) -> None:
        """Sends one event. Raises ClientError if it is refused."""
        sent = self._send(stream, [encode_event(event)], idempotency_key)
        if sent.refused:
            raise ClientError(sent.refused[0].error, 422)

    def _send(
        self,
        stream: str,
        lines: Iterable[bytes | None],
        key: str | None,
        progress: Progress | None = None,
    ) -> Sent:
        base = uuid4().hex if key is None else key
        if not (base and base.isascii() and base.isprintable()):
            raise ClientError(f"an idempotency key must be printable ASCII characters; got {key!r}")
        accepted, refused_count, refused = 0, 0, list[Refused]()
        try:
            for number, batch in enumerate(batches(lines)):
                sent = self._send_batch(stream, batch, f"{base}-{number}")
                accepted, refused_count = (
                    accepted + sent.accepted,
                    refused_count + sent.refused_count,
                )
                refused += sent.refused[: KEPT_REFUSALS - len(refused)]
                if progress is not None:
                    progress(sent)
        except (ClientError, CodecError) as error:
            if accepted:
                before = f"{counted(accepted, 'event')} before {verb(accepted, 'was', 'were')}"
                error.args = (f"{error}; {before} accepted",)
            raise
        return Sent(accepted, tuple(refused), refused_count)

    def _send_batch(self, stream: str, batch: Batch, key: str) -> Sent:
        if not batch.lines:
            return Sent(0, tuple(batch.refused), len(batch.refused))
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        try:
            response = self._wire.post(path_of("streams", stream), batch.body, headers)
        except ClientError as error:
            if error.status is None and self._wire.reached:
                first, last = batch.numbers[0], batch.numbers[-1]
                error.args = (f"{error}; whether it took events {first:,} to {last:,} is unknown",)
            raise
        taken = self._wire.posted(response, PostAnswer)
        refused = [
            Refused(batch.numbers[event.line - 1], event.error, event.text)
            for event in taken.refused
        ]
        refused = sorted(refused + batch.refused, key=lambda event: event.line)
        return Sent(taken.accepted, tuple(refused), taken.refused_count + len(batch.refused))

    def retry(
        self,
        *,
        kind: LetterKind = "deadletters",
        function: str | None = None,
        stream: str | None = None,
        error: str | None = None,
        key: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> Retried:
        """Retries dead letters, or `late`, `dropped` or `diverted` events: gives them to their
        functions again.

        Filters: a function, a stream, a part of the error text, a key, and the times `since` and
        `until` between which they were set aside (microseconds). Each is retried once, however
        often this is called.
        """
        wanted = RetryQuestion(
            kind=kind,
            function=function,
            stream=stream,
            error=error,
            key=key,
            since=since,
            until=until,
            limit=limit,
            dry_run=dry_run,
        )
        return self._put_back(path_of("deadletters", "retry"), wanted, Retried)

    def retry_action(self, action: str, *, dry_run: bool = False) -> int:
        """Puts back all events that an action gave up: they are carried out again, under new ids.
        Returns their number."""
        path = path_of("actions", action, "retry")
        return self._put_back(path, ActionRetryQuestion(dry_run), ActionRetryAnswer).given

    def _put_back(self, path: str, question: msgspec.Struct, answer: type[T]) -> T:
        # Each letter is put back once, however often this is sent.
        headers = {"Content-Type": "application/json"}
        response = self._wire.change("POST", path, msgspec.json.encode(question), headers)
        if response.status_code != 200:
            raise self._wire.refusal(response)
        return self._wire.decoded(response.content, answer)

    # reading slates

    def get(self, update: str, key: str) -> Slate | None:
        """Returns the slate of a key as of the last committed batch; None if there is none."""
        response = self._wire.ask(path_of("slates", update), {"key": key}, missing=True)
        if response.status_code == 404:
            if not self._has(update):
                raise self._wire.refusal(response)
            return None
        return _slate(self._wire.decoded(response.content, SlateAnswer))

    def scan(
        self, update: str, *, prefix: str = "", after: str | None = None, limit: int | None = None
    ) -> Iterator[Slate]:
        """Yields slates in key order: keys with `prefix`, past `after`, at most `limit` of them.

        They come in pages of up to 1,000, each as of one committed batch; see `Slate.batch`.
        """
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            query = {"prefix": prefix, "after": after, "limit": size}
            page = self._asked(path_of("slates", update), SlatePage, query)
            for row in page.slates:
                yield Slate(row.key, row.slate, row.ts, page.batch)
            after, left = page.next, None if left is None else left - len(page.slates)
            if after is None:
                return

    def dump(self, update: str) -> Iterator[Slate]:
        """Yields every slate in key order, all as of one committed batch, as they arrive.

        Raises ClientError if the dump breaks off: a new dump would be of a different batch. Read it
        without long pauses: the server disconnects a client that reads nothing for half a minute.
        """
        decode, tries, count = msgspec.json.Decoder(SlateLine).decode, 0, 0
        while True:
            try:
                with self._wire.open(path_of("slates", update, "dump")) as response:
                    batch = int(response.headers["Millstream-Batch"])
                    for line in _lines(response.iter_bytes()):
                        row = decode(line)
                        yield Slate(row.key, row.slate, row.ts, batch)
                        count += 1
                    return
            except (KeyError, ValueError) as error:
                raise self._wire.strange(error) from error
            except (httpx.HTTPError, ClientError) as error:
                if count:
                    why = (
                        f"the dump of {update!r} broke off after {counted(count, 'slate')}: {error}"
                    )
                    raise ClientError(why) from error
                tries += 1
                self._wire.wait(tries, error)

    def watch(self, update: str, key: str) -> Iterator[Slate | None]:
        """Yields the slate of a key now and whenever it changes; None while there is none. Never
        ends."""
        for event in listen(self._wire, path_of("slates", update, "watch"), {"key": key}):
            if event.kind == "slate":
                yield _slate(self._wire.decoded(event.data, SlateEvent))
            elif event.kind == "gone":
                yield None

    # reading records

    def tail(
        self, stream: str, *, start: int | Literal["end", "start"] = "end", limit: int | None = None
    ) -> Iterator[Record | Gap]:
        """Yields the records of a stream's log as they are appended. Never ends without a `limit`.

        `start` is the number of the first record wanted, "start" for the oldest one, "end" for
        those appended from now on, or a negative number: -5 starts with the last five. If the log's
        retention has removed wanted records, a `Gap` says which, and the tail continues after them.
        """
        page = self._asked(
            path_of("streams", stream, "records"), RecordPage, {"from": start, "limit": 1}
        )
        if not isinstance(start, int) or start < 0:  # a record number stays valid on reconnection
            start = page.records[0].record if page.records else page.next
        return self._tail(stream, start, limit)

    def _tail(self, stream: str, first: int, limit: int | None) -> Iterator[Record | Gap]:
        left = limit
        if left == 0:
            return
        for event in listen(self._wire, path_of("streams", stream, "tail"), {"from": first}):
            if event.kind == "gap":
                gap = self._wire.decoded(event.data, RecordGap)
                yield Gap(gap.start, gap.to - 1)
            elif event.kind == "record":
                yield Record(
                    self._wire.decoded(event.id, int), self._wire.decoded(event.data, object)
                )
                left = None if left is None else left - 1
                if left == 0:
                    return

    # the server itself

    def status(self) -> Status:
        """Returns the state of the application: its batches, rates, lags, queues and dead
        letters."""
        return self._asked("/status", Status)

    def streams(self) -> list[StreamRow]:
        """Returns the streams, with whether each accepts events and whether it can be tailed."""
        return self._asked("/streams", StreamsAnswer).streams

    def graph(self) -> dict[str, Any]:
        """Returns the application's graph: its sources, its functions and how they are
        connected."""
        return self._asked("/graph", dict[str, Any])

    def _asked(self, path: str, kind: type[T], query: Mapping[str, Any] | None = None) -> T:
        return self._wire.decoded(self._wire.ask(path, query).content, kind)

    def _has(self, update: str) -> bool:
        """True if there is such an update; a 404 alone does not tell."""
        if update not in self._updates:
            known = self._asked("/slates", UpdatesAnswer)
            self._updates = {known_update.name for known_update in known.updates}
        return update in self._updates


def _slate(answer: SlateAnswer | SlateEvent) -> Slate:
    return Slate(answer.key, answer.slate, answer.ts, answer.batch, answer.age)


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Splits into lines at line feeds only: JSON text may contain other line ends."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
