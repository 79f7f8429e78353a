"""Fields that the server adds to the records of feeds: the time `at`, ids of posts, and the ratio.

Times increase from record to record, in the order of the log, also across restarts of the server.
The application processes the records of a batch by their times: a delete whose time was before its
post's would do nothing. A client may send a time of its own, which must not be far ahead of the
server's clock. A post keeps it: posts may be imported from elsewhere. In any other record it counts
only if it is later than all times before it.

A record is checked when its body comes, and stamped just before it is appended, so stamps follow
the order of the log. The client's line is stored as it came, with these fields added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Union, get_args

import msgspec

from millstream.errors import InputError
from millstream.feeds.records import Record, read_record
from millstream.json_checks.json_depth import too_deep
from millstream.log.writer import Entry
from millstream.server.streams.records import BOM, MANY, CheckedBody, pieces

POST_BYTES = 1 << 20
"""A longer record is refused: it is decoded for every feed that shows it."""
AHEAD = 60_000_000
"""Microseconds that a client's time may be ahead of the server's clock."""
MOST_LINES = 20_000
"""In one body, because all of its lines are stamped in one go."""


def _as_sent(record: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The type of a record in a body: fields that are added here may be left out."""
    config = record.__struct_config__
    added = {"at"} | ({"id"} if config.tag == "post" else set())
    fields: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(record):
        may_miss = field.name in added or not field.required
        left_out = msgspec.UNSET if field.name in added else field.default
        kind = field.type | msgspec.UnsetType if field.name in added else field.type
        fields.append((field.name, kind, left_out if may_miss else msgspec.NODEFAULT))
    return msgspec.defstruct(
        f"Sent{record.__name__}",
        fields,
        tag_field=config.tag_field,
        tag=config.tag,
        kw_only=True,
        namespace={"__doc__": record.__doc__},
    )


SentRecord: Any = Union[tuple(map(_as_sent, get_args(Record)))]  # noqa: UP007
"""A record as a client may send it, for the OpenAPI document."""

_decode = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class FeedStamps:
    """Creates times for the records of one log, each greater than all before it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self._last = 0

    @property
    def latest(self) -> int:
        """The latest time that counts; one far ahead would push all later times ahead too."""
        return self.clock() + AHEAD

    def are_below(self, at: int) -> bool:
        """True if a time is later than all times so far."""
        return self._last < at

    def learn(self, at: int | None) -> None:
        """Notes a time that is in the log."""
        if at is not None and self._last < at <= self.latest:
            self._last = at

    def next(self) -> int:
        self._last = max(self._last + 1, self.clock())
        return self._last


def made_id(at: int) -> str:
    """Returns the id of a post that came without one; unique, since its time is.

    >>> made_id(1_700_000_000_000_000)
    '60a24181e4000'
    """
    return f"{at:x}"


class FeedRecords(CheckedBody):
    """Accepted records, decoded, beside their lines."""

    __slots__ = ("ids", "records")

    def __init__(self) -> None:
        super().__init__()
        self.records: list[dict[str, Any]] = []
        self.ids: list[str] = []
        """The ids of the posts among the records, once these are stamped."""


class FeedCheck:
    """Checks the records of feeds, and stamps them. See `streams.Check`."""

    most_lines = MOST_LINES
    many_types = MANY

    def __init__(self, stamps: FeedStamps, ratio: Callable[[], float | None]) -> None:
        self._stamps = stamps
        self._ratio = ratio

    def one(self, body: bytes) -> CheckedBody:
        checked = FeedRecords()
        try:
            line = msgspec.json.format(body.removeprefix(BOM), indent=-1)
            self._take(line, checked)
        except Exception as error:
            checked.refuse(1, body, error)
        return checked

    def many(self, body: bytes) -> Iterator[CheckedBody]:
        checked = FeedRecords()
        number = 0
        for piece in pieces(body.removeprefix(BOM)):
            for line in piece.split(b"\n"):
                number += 1
                line = line.replace(b"\r", b" ").strip()
                if line:
                    try:
                        self._take(line, checked)
                    except Exception as error:  # an invalid line must not affect the others
                        checked.refuse(number, line, error)
            yield checked

    def entry(self, checked: CheckedBody, tag: str, digest: int) -> Entry:
        """Stamps the accepted records now, in their order."""
        assert isinstance(checked, FeedRecords)
        ratio = self._ratio()
        lines = []
        for line, record in zip(checked.parts, checked.records, strict=True):
            sent_fields = record.keys()
            added = stamped(record, self._stamps, ratio)
            lines.append(with_fields(line, added, anew=not sent_fields.isdisjoint(added)))
            record |= added
            if record["kind"] == "post":
                checked.ids.append(record["id"])
        return Entry.of(lines, tag, digest)

    def _take(self, line: bytes, checked: FeedRecords) -> None:
        """Adds a record to `checked`; raises if the line cannot be accepted."""
        if len(line) > POST_BYTES:
            raise InputError(f"a line must not be longer than {POST_BYTES} bytes; got {len(line)}")
        record = _decode(line)
        if too_deep(line):
            raise RecursionError
        now = self._stamps.clock()
        if isinstance(record, dict):
            times = _whole_times(record)
            if times:
                record |= times
                line = with_fields(line, times, anew=True)
            completed = {
                "at": now,
                **({"id": "-"} if record.get("kind") == "post" else {}),
                **record,
            }
            at = read_record(completed).at
            if at > self._stamps.latest:
                raise InputError(
                    f"at must not be over {AHEAD // 1_000_000} seconds ahead of the server, "
                    f"whose clock is at {now}; got {at}: leave it out to have it stamped"
                )
        else:
            read_record(record)
        checked.accept(line)
        checked.records.append(record)


def _whole_times(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record whose times are written with a fraction, which JSON allows, as whole
    numbers.

    >>> _whole_times({"at": 7.0, "upto": [7, "ann", "x"]}), _whole_times({"at": 7.5})
    ({'at': 7}, {})
    """
    whole: dict[str, Any] = {}
    match record:
        case {"at": float(at)} if at.is_integer():
            whole["at"] = int(at)
    match record:
        case {"upto": [float(at), *post]} if at.is_integer():
            whole["upto"] = [int(at), *post]
    return whole


def stamped(record: dict[str, Any], stamps: FeedStamps, ratio: float | None) -> dict[str, Any]:
    """Returns the fields to add to a record: those it lacks, and the ratio if it was measured."""
    added: dict[str, Any] = {}
    kind = record["kind"]
    if "at" in record and (kind == "post" or stamps.are_below(record["at"])):
        stamps.learn(record["at"])
    else:
        added["at"] = stamps.next()
    if kind == "post" and "id" not in record:
        added["id"] = made_id(added.get("at") or stamps.next())
    if kind in ("post", "view") and ratio is not None:
        added["ratio"] = ratio  # the measured ratio replaces one that the client sent
    return added


def with_fields(line: bytes, added: dict[str, Any], *, anew: bool) -> bytes:
    r"""Returns a record's line with these fields; `anew` if it may have one of them already.

    >>> with_fields(b'{"kind": "delete", "big": 1e400}', {"at": 7}, anew=False)
    b'{"kind": "delete", "big": 1e400,"at":7}'
    >>> with_fields(b'{"kind":"post","ratio":1.50}', {"ratio": 2.0}, anew=True)
    b'{"kind":"post","ratio":2.0}'
    """
    if not added:
        return line
    if anew:
        parts = _decode_parts(line)
        return _encode(parts | {name: msgspec.Raw(_encode(part)) for name, part in added.items()})
    return line[:-1] + b"," + _encode(added)[1:]
