"""Reads a task's pieces of a topic as chunks, from all partitions at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from millstream.driver.job import SourceSplit
from millstream.engine.intake import Intake
from millstream.kafka.offset_ranges import OffsetRange, fetched
from millstream.kafka.topic import SourceTopic
from millstream.sources.formats import Chunk
from millstream.sources.kafka_records import TopicRecordReader


def topic_chunks(
    topic: SourceTopic, pieces: Iterable[SourceSplit], opened: Callable[[], Intake], clock: int
) -> Iterator[tuple[SourceSplit, Intake, Chunk]]:
    """Yields chunks of the pieces, in the order in which the brokers send them.

    Each piece has its own intake, made by `opened`.
    """
    for current in rounds(pieces):
        intakes = {partition: opened() for partition in current}
        ranges = [
            OffsetRange(partition, piece.split.start, piece.split.stop or 0)
            for partition, piece in current.items()
        ]
        readers = {
            partition: TopicRecordReader(topic, intake.source, clock, intake.fields, len(current))
            for partition, intake in intakes.items()
        }
        for partition, messages, lost in fetched(topic, ranges):
            intake = intakes[partition]
            intake.lost += lost
            if not messages:
                yield current[partition], intake, Chunk([], None, [], None)
                continue
            for chunk, size in readers[partition].take(messages):
                intake.bytes += size
                yield current[partition], intake, chunk
        for partition, reader in readers.items():
            for chunk, size in reader.rest():
                intakes[partition].bytes += size
                yield current[partition], intakes[partition], chunk


def rounds(pieces: Iterable[SourceSplit]) -> list[dict[int, SourceSplit]]:
    """Groups the pieces into rounds, each with at most one piece of a partition."""
    grouped: list[dict[int, SourceSplit]] = []
    for piece in pieces:
        partition = int(piece.split.path.rpartition("/")[2])
        for group in grouped:
            if partition not in group:
                group[partition] = piece
                break
        else:
            grouped.append({partition: piece})
    return grouped
