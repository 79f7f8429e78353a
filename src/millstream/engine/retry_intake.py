"""Takes in retried letters: delivers each, as an event, to the functions that missed it.

- A *dead letter* of a function, and an event that a function *dropped* or *diverted*, go to that
  function alone: the other readers of the stream have had them.
- A *late* event, and a record that *never became an event*, go to all readers of their stream: none
  has had them. A record is read and turned into an event again, as its source is defined now; one
  that its letter does not hold whole is refused. A Kafka record keeps its key, time and headers.

They keep their own times: in event-time order they come after later events, as a late event would,
but do not count as late again. Each counts as a retried delivery (`retried`); what becomes of it is
counted as for any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from millstream.codec import decode_value, encode_value
from millstream.engine.columns import Columns
from millstream.engine.intake import Intake, LateEvent
from millstream.engine.plan import SOURCE
from millstream.engine.router import Router
from millstream.errors import InputError
from millstream.json_checks.json_depth import DEEPEST, too_deep
from millstream.letters.letter_row import LetterRow
from millstream.model.letter_records import Bad, RecordAttributes, why_not_whole
from millstream.model.line_records import line_reader
from millstream.model.rules import DeadLetter
from millstream.model.source import Source


class RetryIntake:
    """Takes in letters for one batch; the rest of a task uses it like any other intake."""

    def __init__(self, source: Source, router: Router, clock: int) -> None:
        """`source` represents the log that holds the letters."""
        self.source = source
        self.events = 0
        self.highest: int | None = None
        self.late: list[LateEvent] = []
        self.bytes = self.lost = 0
        self._router = router
        self._clock = clock
        plan = router.plan
        self._numbers = {
            former: plan.number[update.name]
            for update in plan.workflow.updates
            for former in update.formerly
        } | plan.number
        self._sources = {source.name: source for source in plan.workflow.sources}

    def take(self, letters: Iterable[LetterRow], file: str, first: int) -> None:
        """Routes letters; `file` and `first` are their file and the line of the first."""
        for line, letter in enumerate(letters, first):
            function, stream = letter.function, str(letter.stream)
            if function is not None and function not in self._numbers:
                why = f"retried for function {function!r}, which the application does not have"
                self._refuse(letter, why, file, line)
            elif stream not in self._router.plan.stream_number:
                why = f"retried on stream {stream!r}, which the application does not have"
                self._refuse(letter, why, file, line)
            elif function is not None:
                self._router.deliver_again(self._numbers[function], self._event(letter))
            elif letter.is_record:
                self._take_record(stream, letter, file, line)
            else:
                events = self._event(letter)
                self._router.route(SOURCE, events)
                self._router.count_again(events.streams[0])

    def _event(self, letter: LetterRow) -> Columns:
        number = self._router.plan.stream_number[str(letter.stream)]
        assert letter.ts is not None
        assert letter.key is not None
        return Columns([number], [letter.ts], [letter.key], [encode_value(letter.content)])

    def _take_record(self, stream: str, letter: LetterRow, file: str, line: int) -> None:
        """Tries again to turn a record that never became an event into one."""
        source = self._sources.get(stream)
        if source is None:
            self._refuse(letter, f"{stream!r} is not a source any more", file, line)
            return
        part = why_not_whole(letter.value, letter.form, letter.line)
        attributes = _attributes(letter)
        if attributes is not None:  # the key and time of the record come before declared ones
            source = replace(source, **dict.fromkeys(attributes.replaced))  # type: ignore[arg-type]
        kept = None if attributes is None else _kept(source, attributes)
        intake = Intake(source, self._router, self._clock, None, kept)
        where = letter.file or file, letter.line or line
        key, ts = letter.key or "", letter.ts if source.ts is None else None
        try:
            if part is not None:
                raise InputError(f"a retry needs the whole record; this is {part}")
            record = _record(source, letter)
            if attributes is not None:
                _check_own(source, attributes, where[0])
                record = _with_headers(record, attributes)
        except InputError as error:
            bad = Bad(where[1], letter.content, str(error), letter.form, key, ts)
            intake.refuse(bad, where[0])
        else:
            # A key and a time that are not in the record are in the letter.
            stamps, keys = None if ts is None else [ts], [key] if key else None
            if attributes is not None:
                keys = [key] if source.key is None else None
            intake.take([record], None, where[0], lambda index: where[1], stamps, keys)
        self._router.count_again(self._router.plan.stream_number[stream])

    def _refuse(self, letter: LetterRow, why: str, file: str, line: int) -> None:
        self._router.dead.append(
            DeadLetter(
                None,
                str(letter.stream),
                letter.ts or self._clock,
                letter.key or "",
                letter.content,
                why,
                batch=self._router.batch,
                file=file,
                line=line,
                form="event" if letter.function is not None else letter.form,
                attributes=letter.attributes,
            )
        )


def _attributes(letter: LetterRow) -> RecordAttributes | None:
    text = letter.attributes
    return None if text is None else msgspec.json.decode(text, type=RecordAttributes)


def _kept(source: Source, attributes: RecordAttributes) -> RecordAttributes:
    """Returns the attributes for the letter of a record that fails again."""
    declared = {"key": source.key, "ts": source.ts}
    return replace(attributes, own=tuple(name for name in attributes.own if declared[name] is None))


def _check_own(source: Source, attributes: RecordAttributes, file: str) -> None:
    """InputError if the source takes from the record what the letter does not have of it."""
    for name, declared in (("key", source.key), ("ts", source.ts)):
        if declared is None and name not in attributes.own:
            raise InputError(
                f"{file}: source {source.name!r} takes {name} from the Kafka record, so its letter "
                f"must have it; got one of when {name} came from the value: declare {name}= of the "
                "source and retry, or send the record again"
            )


def _with_headers(record: Any, attributes: RecordAttributes) -> Any:
    """Returns the record with its headers in their field."""
    if attributes.headers is None:
        return record
    if not isinstance(record, dict):
        raise InputError(
            f"the headers go into the field {attributes.headers_field!r}, so a value must be an "
            f"object; got {type(record).__name__}"
        )
    return {**record, attributes.headers_field: attributes.headers}


def _record(source: Source, letter: LetterRow) -> Any:
    """Reads the record in a letter, as its form says.

    JSON that is not an object may also be a line of text, whose source was defined as JSON before.
    """
    value, form = letter.content, letter.form
    if form is None and not isinstance(value, str):
        return value
    data = value.encode() if isinstance(value, str) else value
    if form == "bytes":
        return data
    pattern = source.text.pattern
    if form != "line":
        try:
            record = decode_value(data)
            if too_deep(data):
                raise ValueError(f"it is nested more than {DEEPEST} deep")
            if pattern is None or isinstance(record, dict):
                return record
        except (ValueError, RecursionError) as error:
            if pattern is None:
                raise InputError(f"not JSON: {error}") from None
    return line_reader(pattern, encoding=source.text.line_encoding)(data)
