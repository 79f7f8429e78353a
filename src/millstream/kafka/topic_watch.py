"""Follows the end offsets of a topic, and reports each change at once.

A thread asks the brokers for the end of every partition: many times a second while records come in,
less often when none do, and least often while the reader is behind and has enough to read. It is
one small request a broker, without any records. The end is the last stable offset, so that records
of open transactions wait. Now and then it also asks for the first offsets of the partitions
(retention removes old records) and for new partitions.

While brokers do not answer, it retries without a limit. A topic that does not exist, or may not be
read, is an error.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from millstream.errors import InputError
from millstream.kafka.client import (
    AWAY_SECONDS,
    Away,
    ConnectionErrors,
    client_settings,
    library,
    made_client,
)
from millstream.kafka.topic import SourceTopic

BUSY_SECONDS, IDLE_SECONDS = 0.01, 0.1
"""Seconds between two requests for the ends: while records come, and otherwise."""
BEHIND_SECONDS = 0.5
"""The same while the reader is behind: a request for six partitions takes 2 ms of processor time,
of which the broker takes two thirds."""
IDLE_AFTER = 2.0
LOOK_SECONDS = 2.0
"""Seconds between two requests for new partitions, and for new first offsets."""
MISSING_SECONDS = 3.0
"""Seconds for which brokers may not know a topic: not all of them know a new topic at once."""
STAMPS = 20_000


class TopicEnds(NamedTuple):
    """The first offset of each partition, and its last stable offset."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]


class TopicWatch:
    """Follows the end offsets of a topic in its own thread, once it is started."""

    def __init__(
        self,
        topic: SourceTopic,
        *,
        busy_seconds: float = BUSY_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        behind_seconds: float = BEHIND_SECONDS,
    ) -> None:
        self.ends: TopicEnds | None = None
        """The last answer of the brokers; None until they answer."""
        self.error: InputError | None = None
        self.changed: Callable[[], None] = lambda: None
        """Called, in the thread, whenever `ends` has changed or `error` is set."""
        self._topic = topic
        self._busy, self._idle, self._behind = busy_seconds, idle_seconds, behind_seconds
        self._caught_up = threading.Event()
        self._caught_up.set()
        self._away = Away()
        self._sentences: deque[str] = deque(maxlen=100)
        self._stamps: deque[tuple[int, tuple[int, ...]]] = deque(maxlen=STAMPS)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answered = threading.Event()
        self._thread: threading.Thread | None = None
        self._said = ConnectionErrors()
        self._failed_part: Exception | None = None
        self._missing_since: float | None = None

    @property
    def is_behind(self) -> bool:
        """True while the reader has not taken all records before the ends that it knows.

        When it has, the brokers are asked for the ends at once.
        """
        return not self._caught_up.is_set()

    @is_behind.setter
    def is_behind(self, is_behind: bool) -> None:
        if is_behind:
            self._caught_up.clear()
        else:
            self._caught_up.set()

    def start(self) -> None:
        """Start following, in the calling process. InputError if no client can be created."""
        if self._thread is None:
            kafka = library()
            settings = client_settings(self._topic.options, self._topic.where)
            admin = self._admin(settings)
            self._thread = threading.Thread(
                target=self._follow, args=(kafka, settings, admin), name="topic", daemon=True
            )
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for an answer of the brokers, or an error; False if neither came in time."""
        return self._answered.wait(seconds)

    def sentences(self) -> list[str]:
        """The messages for the user since the last call."""
        messages = []
        while self._sentences:
            messages.append(self._sentences.popleft())
        return messages

    def stamp_at(self, position: Sequence[int]) -> int | None:
        """The time at which a record after the position was first seen; None if there is none.

        Positions must not decrease: times before the position are forgotten.
        """
        with self._lock:
            while self._stamps and not _is_behind(position, self._stamps[0][1]):
                self._stamps.popleft()
            return self._stamps[0][0] if self._stamps else None

    def close(self) -> None:
        self._stop.set()
        self._caught_up.set()  # ends the wait of a reader that is behind
        if self._thread is not None:
            self._thread.join(2 * AWAY_SECONDS)
            self._thread = None

    def _follow(self, kafka: Any, settings: dict[str, Any], admin: Any) -> None:
        look_at = last_change = 0.0
        while not self._stop.is_set():
            now, self._failed_part = time.monotonic(), None
            try:
                admin.poll(0)
                if now >= look_at:
                    ends = self._look(kafka, admin)
                    look_at = now + LOOK_SECONDS
                else:
                    assert self.ends is not None
                    ends = TopicEnds(self.ends.begins, self._ends(kafka, admin, self.ends.begins))
                if self._publish(ends):
                    last_change = now
                if self._failed_part is not None:  # the leader of a partition is away
                    raise self._failed_part
                self._say(self._away.answered(self._topic.where))
            except InputError as error:
                self.error = error
                self._answered.set()
                self.changed()
                return
            except kafka.KafkaException as error:
                why = self._said.why(admin, error.args[0])
                self._say(self._away.failed(why, self._topic.where))
                self._stop.wait(0.2)
                # A new client: the old one keeps what it knows about leaders, even if it is wrong.
                look_at, admin = 0.0, self._admin(settings)
            if self.is_behind:
                self._caught_up.wait(self._behind)
            else:
                self._stop.wait(self._idle if now - last_change > IDLE_AFTER else self._busy)

    def _publish(self, ends: TopicEnds) -> bool:
        """Publish the offsets; True if they have changed."""
        known, self.ends = self.ends, ends
        if known == ends:
            return False
        with self._lock:
            if known is None or known.ends != ends.ends:
                self._stamps.append((time.time_ns() // 1_000, ends.ends))
        self._answered.set()
        self.changed()
        return True

    def _look(self, kafka: Any, admin: Any) -> TopicEnds:
        """Asks for the partitions, and for their first and last offsets."""
        name = self._topic.name
        about = admin.list_topics(name, timeout=AWAY_SECONDS).topics[name]
        if about.error is not None:
            self._refuse(kafka, about.error)
        self._missing_since = None
        known = self.ends or TopicEnds((), ())
        count = max(len(about.partitions), len(known.ends))
        begins = self._asked(kafka, admin, count, "earliest", known.begins)
        return TopicEnds(begins, self._ends(kafka, admin, begins))

    def _ends(self, kafka: Any, admin: Any, begins: tuple[int, ...]) -> tuple[int, ...]:
        known = self.ends.ends if self.ends is not None else ()
        ends = self._asked(kafka, admin, len(begins), "latest", known)
        return tuple(map(max, ends, begins))

    def _asked(
        self, kafka: Any, admin: Any, count: int, which: str, known: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Asks for an offset of every partition; takes the known one if its leader is away."""
        from confluent_kafka.admin._listoffsets import OffsetSpec

        wanted = {
            kafka.TopicPartition(self._topic.name, number): getattr(OffsetSpec, which)()
            for number in range(count)
        }
        answers = admin.list_offsets(
            wanted,
            isolation_level=kafka.IsolationLevel.READ_COMMITTED,
            request_timeout=AWAY_SECONDS,
        )
        offsets: dict[int, int] = {}
        failed = None
        for partition, future in answers.items():
            try:
                offset = future.result(2 * AWAY_SECONDS).offset
                if offset < 0:  # the result of a lost connection, without an error
                    raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TRANSPORT))
                offsets[partition.partition] = offset
            except (kafka.KafkaException, TimeoutError) as error:
                failed = error
                if isinstance(error, TimeoutError):
                    failed = kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
                if partition.partition < len(known):
                    offsets[partition.partition] = known[partition.partition]
        if failed is not None:
            if len(offsets) < count:
                raise failed
            self._failed_part = failed
        return tuple(offsets[number] for number in range(count))

    def _refuse(self, kafka: Any, error: Any) -> None:
        """Raise for a topic that cannot be read: InputError if retrying cannot help."""
        where, code = self._topic.where, error.code()
        now = time.monotonic()
        self._missing_since = self._missing_since or now
        if code == kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise InputError(
                f"{where}: this client may not read the topic ({error.str()}); give it the right "
                "to describe and to read it"
            )
        if code in (
            kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
            kafka.KafkaError.TOPIC_EXCEPTION,
        ) and (now - self._missing_since > MISSING_SECONDS or code != error.UNKNOWN_TOPIC_OR_PART):
            raise InputError(
                f"{where}: there is no such topic at {dict(self._topic.options)['servers']}; "
                "create it (kafka-topics.sh --create --topic ...), or name another"
            )
        raise kafka.KafkaException(error)

    def _admin(self, settings: dict[str, Any]) -> Any:
        from confluent_kafka.admin import AdminClient

        with_callback = {**settings, "error_cb": self._said.note}
        return made_client(AdminClient, with_callback, self._topic.where)

    def _say(self, sentence: str | None) -> None:
        if sentence is not None:
            self._sentences.append(sentence)
            self.changed()


def _is_behind(position: Sequence[int], ends: tuple[int, ...]) -> bool:
    return len(position) < len(ends) or any(at < end for at, end in zip(position, ends))  # noqa: B905  # a position is never longer
