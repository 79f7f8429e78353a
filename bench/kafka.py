"""From a topic of Kafka to slates: the rate, compared with that from files, and the latency.

The records are the same in the files and in the topic, which has six partitions on one broker. The
broker is on the same machine, and shares its cores with Spark. Latency counts from the time at
which the producer gets a record's acknowledgement until its slate is read. Peers (`bench/peers`)
count the records of the same topic.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from bench import data, feed, on_millstream
from bench.apart import started
from bench.bench import Bench, usage_columns
from bench.figures import Bar, Outcome
from bench.latency import EVERY, RATE, latency_row, opened, watched
from bench.peers.counting import PEERS, Peer, measured
from fault_runs.kafka_server import KafkaBrokers, kafka_brokers

PARTITIONS = 6
KEYS = 100_000
BATCHES = 5
EVENTS = {100: 1_000_000, 1_000: 300_000}
"""The number of events, by the length of a record."""
PEER_SECONDS = 60.0
"""The most seconds for which a peer is measured."""
ROUNDS = 3
"""The files and the topic are measured in turn, so often; medians are reported."""
LEAST_RATIO = 0.9
MOST_P99 = 0.25


def run(bench: Bench) -> Outcome:
    rows, ratios, peers = list[dict[str, Any]](), dict[str, float](), dict[str, float]()
    warm_up, seconds = (3.0, 10.0) if bench.quick else (10.0, 60.0)
    with kafka_brokers(bench.fresh("kafka"), heap="512m") as brokers:
        for length, events in EVENTS.items():
            count = 20_000 if bench.quick else events
            source = data.padded(bench.data, count, KEYS, BATCHES, length)
            topic = brokers.new_topic(partitions=PARTITIONS)
            fill(brokers, topic, source)
            files, kafka = _rates(bench, brokers, topic, source, length)
            rows += [files, kafka]
            ratios[f"ratio_{length}"] = kafka["events_per_s"] / files["events_per_s"]
            peers[f"millstream_{length}"] = kafka["events_per_s"]
            for peer in PEERS:
                found = _peer_rate(bench, brokers, topic, peer, length, count)
                rows.append(found)
                peers[f"{peer.name}_{length}"] = found["events_per_s"]
        rows.append(_latency(bench, brokers, warm_up, seconds))
    latency = {name: rows[-1][name] for name in ("p50_s", "p99_s")}
    return Outcome(
        "kafka",
        rows,
        {**ratios, **latency, **peers},
        [
            *(Bar(name, ratio, LEAST_RATIO) for name, ratio in ratios.items()),
            Bar("p99_s", latency["p99_s"], MOST_P99, at_least=False),
        ],
        {"partitions": PARTITIONS, "keys": KEYS, "batches": BATCHES, "rate": RATE},
        [
            "ratio_N: the rate from Kafka to that from files, with records of N bytes; medians of "
            f"{ROUNDS} rounds in turn",
            f"latency: at {RATE:,} records/s, from acknowledged by all replicas to readable",
            "peers: two processes each, state on disk, as their documentation has it; Bytewax "
            "takes a snapshot every 10 s, Quix Streams and Faust commit every few seconds, with a "
            "changelog topic; Millstream commits every batch",
        ],
    )


def _rates(
    bench: Bench, brokers: KafkaBrokers, topic: str, source: Path, length: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows for the files and for the topic."""
    address = f"kafka:{topic}?servers={brokers.servers}"
    given = {"app": "counter", "order": "arrival", "source": source, "batches": BATCHES}
    addresses = {"files": {}, "Kafka": {"address": address}}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in addresses}
    for number in range(1 if bench.quick else ROUNDS):
        for name in [*addresses][:: -1 if number % 2 else 1]:
            row = bench.measure(
                f"{name}, {length} B",
                on_millstream.run_all,
                store=bench.fresh("store"),
                **addresses[name],
                **given,
            )
            rounds[name].append(row)
    files, kafka = (
        sorted(rows, key=lambda row: row["events_per_s"])[len(rows) // 2]
        for rows in rounds.values()
    )
    return files, kafka


def _peer_rate(
    bench: Bench, brokers: KafkaBrokers, topic: str, peer: Peer, length: int, count: int
) -> dict[str, Any]:
    what = f"{peer.shown}, {length} B"
    bench.say(f"  {what} ...")
    place, most = bench.fresh(f"peers/{peer.name}"), 10.0 if bench.quick else PEER_SECONDS
    row = measured(peer, place, brokers.servers, topic, count, count // BATCHES, most)
    bench.say(f"  {what}: {row['events_per_s']:,.0f} events/s after the first {count // BATCHES:,}")
    return {**row, "what": what}


def fill(brokers: KafkaBrokers, topic: str, source: Path) -> None:
    """Put the lines of the files into the topic, by their keys."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers.servers, "linger.ms": 50})
    for line in _lines(source):
        key = line[8 : line.index(b'"', 8)]
        while True:
            try:
                producer.produce(topic, line, key)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def _lines(source: Path) -> Iterator[bytes]:
    for path in sorted(source.iterdir()):
        with open(path, "rb") as file:
            for line in file:
                yield line.rstrip(b"\n")


def _latency(bench: Bench, brokers: KafkaBrokers, warm_up: float, seconds: float) -> dict[str, Any]:
    what = f"Kafka, {RATE:,} records/s"
    bench.say(f"  {what} ...")
    store, stop = (bench.fresh(f"live/{name}") for name in ("store", "stop"))
    stop.unlink(missing_ok=True)
    topic = brokers.new_topic(partitions=PARTITIONS)
    place = {"servers": brokers.servers, "topic": topic}
    given = {"app": "chain", "order": "arrival", "store": str(store), "stop": str(stop)}
    address = f"kafka:{topic}?servers={brokers.servers}"
    with started(on_millstream.run_until, address=address, **given) as running:
        send(**place, rate=400, seconds=EVERY, first=-1)  # creates the store and warms Spark up
        with opened(store, running) as reader:
            sending = {**place, "rate": RATE, "seconds": warm_up + seconds + 2}
            with started(send, **sending) as feeding:
                readable = watched(reader, feeding, running, round((warm_up + seconds) / EVERY))
                acknowledged = feeding.wait()
        stop.touch()
        ran = running.wait()
    measured = range(round(warm_up / EVERY), round((warm_up + seconds) / EVERY))
    waits = [readable[n] - acknowledged[n] for n in measured if n in readable]
    row = latency_row(what, waits, len(measured), ran)
    bench.say(f"  {what}: p50 {row['p50_s']:.3f} s, p99 {row['p99_s']:.3f} s")
    return {**row, **usage_columns(asdict(running.usage))}


def send(servers: str, topic: str, rate: int, seconds: float, first: int = 0) -> list[float]:
    """Send records at a rate, a group at each beat; the last of each group is a marker.

    Returns the time of day at which each marker was acknowledged.
    """
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 2})
    random, began = Random(1), time.time()
    handfuls = round(seconds / EVERY)
    acknowledged = [0.0] * handfuls
    for number in range(handfuls):
        due = began + (number + 1) * EVERY
        lines = feed.file_lines(random, number + first, round(rate * EVERY), due - EVERY, EVERY)
        while time.time() < due:
            producer.poll(max(0.0, due - time.time()))
        for line in lines[:-1]:
            producer.produce(topic, line.rstrip("\n"), line[8 : line.index('"', 8)])

        def heard(error: Any, message: Any, number: int = number) -> None:
            if error is not None:
                raise AssertionError(f"record {number} was not taken: {error}")
            acknowledged[number] = time.time()

        marker = feed.marker(number + first)
        producer.produce(topic, lines[-1].rstrip("\n"), marker, on_delivery=heard)
        producer.poll(0)
    producer.flush()
    return acknowledged
