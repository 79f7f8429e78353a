"""From files and from Kafka to Kafka, exactly once, while brokers and the driver are killed.

There are three brokers. A sender writes numbered records to files or to a topic. The application
numbers the records of each key once more and puts them into a topic, and the changes of its slates
into another. Drivers kill themselves at chosen moments of a transaction, or are killed at random
ones; brokers are killed, one or two at once, and started again. In the end a reader of committed
records must see for each key the numbers 1, 2, 3, ... with the records in the order in which they
were sent; and the changes, applied, must give the slates. If the source is a topic, what counts as
sent is what the topic has: the sender's library may put a record there twice, under a new epoch of
its producer, after the kill of two brokers.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fault_runs.committed_records import Seen, committed_records
from fault_runs.kafka_driver import NEVER, STRIKES
from fault_runs.kafka_server import KafkaBrokers, kafka_brokers
from fault_runs.outcome import Difference, stored_slates
from fault_runs.processes import Started, seconds_to_commit, start
from fault_runs.result import Result
from fault_runs.scenario import Context, Run, Scenario

KEYS, PARTITIONS = 40, 6
DRIVER_KILLS, BROKER_KILLS = 6, 5
"""Kills in one run. The last two brokers are killed at once."""
PAUSE = 0.2
"""Seconds between two groups of records."""
HANDFUL = 40


class SentRecord(NamedTuple):
    """A record of the source."""

    key: str
    number: int


class Sender(threading.Thread):
    """Sends numbered records, each once, until it is stopped. The load is low on purpose."""

    def __init__(self, random: Random) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self._keys: list[str] = []
        """The key of each record."""
        self._random = random

    def run(self) -> None:
        while not self.stop.wait(PAUSE):
            first = len(self._keys)
            keys = [f"k{self._random.randrange(KEYS)}" for _ in range(HANDFUL)]
            self.send([{"id": first + n, "key": key} for n, key in enumerate(keys)])
            self._keys += keys
        self.finish()

    def send(self, records: list[dict[str, Any]]) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Returns once all sent records have arrived."""

    def sent(self) -> list[SentRecord]:
        """All records, those of a key in the order in which they are to be read."""
        return [SentRecord(key, number) for number, key in enumerate(self._keys)]


class FileSender(Sender):
    """Sends each group of records as a file."""

    def __init__(self, folder: Path, random: Random) -> None:
        super().__init__(random)
        self._folder = folder
        self.source = f"json:{folder}"
        folder.mkdir()

    def send(self, records: list[dict[str, Any]]) -> None:
        name = f"{records[0]['id']:09d}.json"
        hidden = self._folder / f".{name}"
        hidden.write_text("".join(json.dumps(record) + "\n" for record in records))
        hidden.rename(self._folder / name)


class TopicSender(Sender):
    """Sends records to a topic; all replicas acknowledge them."""

    def __init__(self, brokers: KafkaBrokers, random: Random) -> None:
        from confluent_kafka import Producer

        super().__init__(random)
        self._brokers = brokers
        self._topic = brokers.new_topic(partitions=PARTITIONS)
        self.source = f"kafka:{self._topic}?servers={brokers.servers}"
        settings = {"enable.idempotence": True, "log_level": 2, "message.timeout.ms": 600_000}
        self._producer = Producer({"bootstrap.servers": brokers.servers, **settings})

    def send(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            self._producer.produce(self._topic, json.dumps(record), record["key"])
        self._producer.poll(0)

    def finish(self) -> None:
        while self._producer.flush(10.0):
            pass

    def sent(self) -> list[SentRecord]:
        there = [
            SentRecord((record.key or b"").decode(), json.loads(record.value or b"")["id"])
            for record in committed_records(self._brokers, self._topic)
        ]
        if set(there) != set(super().sent()):
            raise AssertionError(f"topic {self._topic} does not have what was sent to it")
        return there


class Drivers:
    """Drivers that run in turn over the same store and topics."""

    def __init__(self, folder: Path, servers: str, source: str, out: str, changes: str) -> None:
        self._folder = folder
        words = [str(folder), servers, source, out, changes]
        self._words = ["-m", "fault_runs.kafka_driver", *words]
        self.store = folder / "store"

    def start(self, runner: str, moment: str = NEVER, number: int = 0) -> Started:
        return start([*self._words, runner, moment, str(number)], self._folder / "said")


def _run(name: str, from_kafka: bool, driver_kills: int, broker_kills: int) -> Run:
    """Kill drivers and brokers in an order drawn by seed, then let the application finish, and
    compare."""

    def run(seed: int, folder: Path, context: Context) -> Result:
        random = Random(seed)
        runner = "spark" if seed % 4 == 0 else "in-process"
        with kafka_brokers(folder / "brokers", 3) as brokers:
            out = brokers.new_topic(partitions=PARTITIONS)
            changes = brokers.new_topic(partitions=2, config={"cleanup.policy": "compact"})
            sender: FileSender | TopicSender = FileSender(folder / "in", random)
            if from_kafka:
                sender = TopicSender(brokers, random)
            drivers = Drivers(folder, brokers.servers, sender.source, out, changes)
            sender.start()
            try:
                strikes = _strikes(random, driver_kills, broker_kills)
                times = _struck(random, brokers, drivers, runner, strikes)
            finally:
                sender.stop.set()
            sender.join(120)
            last = drivers.start("last")
            try:
                if last.wait() != 0:
                    raise AssertionError(f"the last run failed: {last.said()}")
            finally:
                last.kill()
            seen = committed_records(brokers, out)
            found = _difference(sender.sent(), seen)
            wrong = _wrong_slates(committed_records(brokers, changes), drivers.store)
        note = found.note or f"{len(seen)} records, {runner}"
        return Result(
            name,
            seed,
            found.lost + wrong,
            found.doubled,
            tuple(times),
            f"{note}; {wrong} wrong slates" if wrong else note,
            driver_kills + broker_kills,
        )

    return run


def _strikes(random: Random, driver_kills: int, broker_kills: int) -> list[str]:
    """Draws the order of kills."""
    strikes = ["driver"] * driver_kills + ["broker"] * (broker_kills - 2) + ["two brokers"]
    random.shuffle(strikes)
    return strikes


def _struck(
    random: Random, brokers: KafkaBrokers, drivers: Drivers, runner: str, strikes: list[str]
) -> list[float]:
    """Does all kills; returns the seconds that each driver took to its first commit."""
    moments = [*STRIKES, "at random", "while starting"]
    random.shuffle(moments)
    times: list[float] = []
    running = drivers.start(runner)
    try:
        for strike in strikes:
            if strike == "broker":
                _kill_brokers(random, brokers, 1)
            elif strike == "two brokers":
                _kill_brokers(random, brokers, 2)
            else:
                running.kill()  # replaced by a driver that will strike
                moment = moments.pop()
                running = _killed(random, drivers, runner, moment, times)
        seconds = seconds_to_commit(drivers.store, running)
        times += [seconds] if seconds is not None else []
    finally:
        running.kill()
    return times


def _killed(
    random: Random, drivers: Drivers, runner: str, moment: str, times: list[float]
) -> Started:
    """Start a driver, let it be killed at the moment, and start another, which is returned."""
    if moment in STRIKES:
        struck = drivers.start(runner, moment, random.randrange(1, 5))
        try:
            code = struck.wait()
        finally:
            struck.kill()
        if code >= 0:
            raise AssertionError(f"{moment} was never reached: {struck.said()}")
    else:
        struck = drivers.start(runner)
        if moment == "at random":
            seconds = seconds_to_commit(drivers.store, struck)
            times += [seconds] if seconds is not None else []
        time.sleep(random.uniform(0.1, 3.0))  # a random moment is intended
        struck.kill()
    return drivers.start(runner)


def _kill_brokers(random: Random, brokers: KafkaBrokers, count: int) -> None:
    """Kill brokers, leave them dead for a while, and start them again."""
    struck = random.sample([1, 2, 3], count)
    for broker in struck:
        brokers.kill(broker)
    time.sleep(random.uniform(0.5, 4.0))
    for broker in struck:
        brokers.restart(broker)


def _difference(sent: list[SentRecord], seen: list[Seen]) -> Difference:
    """Compares what a reader must see with what it saw; records out of order are doubled."""
    numbers: Counter[str] = Counter()
    must: Counter[tuple[Any, ...]] = Counter()
    for key, number in sent:
        numbers[key] += 1
        must[key, numbers[key], number] += 1
    have: Counter[tuple[Any, ...]] = Counter()
    last: dict[str, int] = {}
    moved = []
    for record in seen:
        key, value = (record.key or b"").decode(), json.loads(record.value or b"")
        have[key, value["n"], value["id"]] += 1
        if value["n"] <= last.get(key, 0):
            moved.append(f"{key}: {value['n']} after {last[key]}")
        last[key] = value["n"]
    lost, doubled = must - have, have - must
    note = "; ".join(map(str, [*lost, *doubled, *moved][:4]))
    return Difference(lost.total(), max(doubled.total(), len(moved)), note)


def _wrong_slates(changes: list[Seen], store: Path) -> int:
    """The number of keys whose last change is not the slate."""
    held: dict[str, bytes] = {}
    for record in changes:
        key = (record.key or b"").decode()
        if record.value is None:
            held.pop(key, None)
        else:
            held[key] = record.value
    slates = {key: data for (_, key), (_, data, _, _) in stored_slates(store).items()}
    return len(dict(held.items() ^ slates.items()))


_PROMISE = (
    "A reader of committed records sees each output once, in order by key; changes are slates"
)


def kafka_scenarios(
    driver_kills: int = DRIVER_KILLS, broker_kills: int = BROKER_KILLS
) -> tuple[Scenario, ...]:
    """The scenarios from files and from Kafka, with at most six kills of drivers in a run, and at
    least two of brokers."""
    return tuple(
        Scenario(name, _PROMISE, _run(name, from_kafka, driver_kills, broker_kills), least=50)
        for name, from_kafka in (("kafka-sink-killed", False), ("kafka-to-kafka-killed", True))
    )
