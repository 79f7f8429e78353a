"""Appends letters to the log of retried letters, each once.

Every letter has a number in its own log. The letter is appended with a tag that is made from that
number, and no tag is ever forgotten. So a letter is in the log once, no matter how often it is
retried and what crashed in between. Batches take it in by position, as they take the records of a
source, so it is processed exactly once. A letter that fails again is a new letter, with its own
number.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from millstream.errors import InputError, LogLocked
from millstream.letters.letter_row import LetterRow
from millstream.letters.selection import LetterFilter, why_not
from millstream.log.blocks import Tag
from millstream.log.entries import Appended, Entry
from millstream.log.place_writer import EventLogWriter
from millstream.log.retention import FOR_EVER
from millstream.log.stream_logs import StreamLogs
from millstream.messages.letters import Retried
from millstream.nearest import did_you_mean

RETRIED = "deadletters.retried"
"""The log of retried letters, and its name in batches."""
TOGETHER = 1_000
"""The maximum number of letters in one append."""
LOCK_SECONDS, PAUSE = 10.0, 0.05
_decode = msgspec.json.Decoder(LetterRow).decode


class LetterRetry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A retried letter, as it is in the log."""

    kind: str
    number: int
    """Its number in its original log."""
    row: LetterRow


class Cleared(NamedTuple):
    """The letters that were removed, and those that another application has yet to read."""

    removed: int
    kept: int


class EveryTag:
    """All tags of a log. None is ever forgotten."""

    is_complete = False

    def __init__(self) -> None:
        self._known: dict[str, Tag] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, tag: str) -> Tag | None:
        return self._known.get(tag)

    def add(self, tags: Iterable[Tag]) -> None:
        self._known.update((tag.tag, tag) for tag in tags)

    def forget_before(self, record: int) -> None:
        """Does nothing: no tag is forgotten."""


def retry_letters(
    logs: StreamLogs,
    wanted: LetterFilter,
    overflows: Mapping[str, tuple[str, str]],
    functions: Collection[str] = (),
) -> Retried:
    """Retries the letters that match `wanted`.

    `overflows` maps each update to the stream that it diverts events to, and to the stream that
    they belong to when they are retried. `functions` are those of the application, if known:
    InputError if none has the wanted name, and no letter either.
    """
    retried = _retried(logs, wanted, *_log_of(wanted, overflows))
    name = wanted.function
    if retried == Retried(0, 0) and name is not None and functions and name not in functions:
        raise InputError(f"there is no function {name[:100]!r}; {did_you_mean(name, functions)}")
    return retried


def _retried(logs: StreamLogs, wanted: LetterFilter, log: str, stream: str | None) -> Retried:
    if not logs.has(log):
        return Retried(0, 0)
    known = EveryTag()
    if wanted.dry_run:
        _load(logs, known)
        return _appended(None, _letters(logs, log, wanted, stream), wanted, known)
    with closing(_writer(logs, known)) as writer:
        if not len(known):
            _load(logs, known)  # a writer in a folder does not load tags, but holds the log's lock
        return _appended(writer, _letters(logs, log, wanted, stream), wanted, known)


def _log_of(
    wanted: LetterFilter, overflows: Mapping[str, tuple[str, str]]
) -> tuple[str, str | None]:
    """Returns the log of the letters, and the stream that they are retried on, if not their own."""
    if wanted.kind != "diverted":
        return wanted.kind, None
    if wanted.function is None or wanted.function not in overflows:
        raise InputError(
            "for diverted events, function must name the update that diverted them, one with "
            f"overload='divert'; got {wanted.function!r}, there are: "
            f"{', '.join(overflows) or 'none'}"
        )
    return overflows[wanted.function]


def _letters(
    logs: StreamLogs, log: str, wanted: LetterFilter, stream: str | None
) -> Iterator[tuple[int, LetterRow]]:
    """Yields the matching letters, with their numbers."""
    with closing(logs.reader(log)) as reader:
        for block in reader.blocks(reader.start[0], reader.end[0]):
            for number, line in enumerate(block.lines, block.first):
                letter = _decode(line)
                if wanted.takes(letter, block.stamp):
                    if stream is not None:
                        letter = replace(letter, function=wanted.function, stream=stream)
                    yield number, letter


def _appended(
    writer: EventLogWriter | None,
    letters: Iterator[tuple[int, LetterRow]],
    wanted: LetterFilter,
    known: EveryTag,
) -> Retried:
    given = before = 0
    impossible: Counter[str] = Counter()

    def entries() -> Iterator[Entry]:
        nonlocal before
        for number, letter in letters:
            tag = letter_tag(wanted, number)
            if (reason := why_not(letter)) is not None:
                impossible[reason] += 1
            elif known.get(tag) is not None:
                before += 1
            else:
                yield Entry.of([msgspec.json.encode(LetterRetry(wanted.kind, number, letter))], tag)

    chosen = islice(entries(), wanted.limit)
    while group := list(islice(chosen, TOGETHER)):
        if writer is None:
            given += len(group)
            continue
        for result in writer.append(group):
            is_new = isinstance(result, Appended) and not result.repeated
            given, before = given + is_new, before + (not is_new)
    return Retried(given, before, dict(impossible))


def clear_letters(logs: StreamLogs, kind: str, *, dry_run: bool = False) -> Cleared:
    """Removes the letters of a kind, except those that another application has yet to read.

    Numbering continues, so that a new letter never gets the number of a retried one. Letters that
    were retried and not taken in yet are in a log of their own, and stay.
    """
    if not logs.has(kind):
        return Cleared(0, 0)
    before, end = _records(logs, kind)
    if dry_run or before == end:
        return Cleared(end - before, 0)
    logs.clear(kind)
    start, end = _records(logs, kind)
    return Cleared(start - before, end - start)


def _records(logs: StreamLogs, kind: str) -> tuple[int, int]:
    """Returns the number of the first record of a log, and of the next."""
    with closing(logs.reader(kind)) as reader:
        return reader.start[1], reader.end[1]


def letter_tag(wanted: LetterFilter, number: int) -> str:
    """The permanent tag of a letter."""
    origin = f"diverted:{wanted.function}" if wanted.kind == "diverted" else wanted.kind
    return f"{origin}:{number}"


def given_again(logs: StreamLogs) -> set[int]:
    """Returns the numbers of the dead letters that were retried."""
    known = EveryTag()
    _load(logs, known)
    prefix = "deadletters:"
    tags = (tag.removeprefix(prefix) for tag in known._known if tag.startswith(prefix))
    return {int(tag) for tag in tags if tag.isdigit()}


def _load(logs: StreamLogs, known: EveryTag) -> None:
    if not logs.has(RETRIED):
        return
    with closing(logs.reader(RETRIED)) as reader:
        for block in reader.blocks(reader.start[0], reader.end[0]):
            known.add(block.tags)


def _writer(logs: StreamLogs, known: EveryTag) -> EventLogWriter:
    """Opens the writer. In a folder there is one at a time; others finish soon, so this waits."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return logs.writer(RETRIED, FOR_EVER, known)
        except LogLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE)
