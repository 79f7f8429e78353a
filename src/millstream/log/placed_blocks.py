"""Reads a part of a log on any host: from the mirror on the host that planned the read, or from the
objects in the place on any other host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from millstream.errors import LogError, PlaceError
from millstream.log.mirror import read_log_mirror
from millstream.log.place_writer import blocks_of, log_pieces
from millstream.log.reader import Block, LogReader
from millstream.places.piece_log import PieceLog
from millstream.places.place import Place


class LogObjects(NamedTuple):
    """The location of a part of a log."""

    stream: str
    mirror: str
    """The mirror's folder on the host that planned the read."""
    token: str
    """The token of that mirror."""
    objects: tuple[tuple[int, str], ...]
    """The objects in the place that have this part, each with the offset of its first byte."""


def placed_blocks(
    where: LogObjects, start: int, stop: int, place: Callable[[], Place]
) -> Iterator[Block]:
    """The blocks between two offsets at block boundaries, their content checked."""
    record = read_log_mirror(Path(where.mirror))
    if record is not None and record.token == where.token:
        with closing(LogReader(where.mirror)) as reader:
            yield from reader.blocks(start, stop)
        return
    pieces = log_pieces(place(), where.stream)
    try:
        for begin, data in _objects(pieces, where.objects, start, stop):
            for block in blocks_of(pieces, (begin, -1), data):
                if start <= block.offset < stop:
                    header = block.header
                    yield Block(
                        block.offset,
                        block.next_offset,
                        header.first,
                        header.count,
                        header.stamp,
                        block.lines(),
                        block.tags(),
                    )
    except PlaceError as error:
        raise LogError(f"log {pieces.address}: cannot be read: {error}") from None


def _objects(
    pieces: PieceLog, objects: tuple[tuple[int, str], ...], start: int, stop: int
) -> Iterator[tuple[int, bytes]]:
    """The bytes between two offsets, from block boundary to block boundary."""
    at = start
    for begin, name in objects:
        data = pieces.object_named(name)
        if data is None:
            break  # joined with others meanwhile
        if begin + len(data) > at >= begin:
            yield at, data[at - begin :]
            at = begin + len(data)
    while at < stop:
        chain = pieces.chain()
        if at < chain.start[0] or at >= chain.end:
            raise LogError(
                f"log {pieces.address}: has nothing at offset {at} any more, and it goes from "
                f"{chain.start[0]} to {chain.end}; was the log replaced, or does it keep too "
                "little? See --retain-bytes and --retain-age"
            )
        for _, begin, data in pieces.bytes_from(chain, at):
            yield begin, data
            at = begin + len(data)
            if at >= stop:
                return
