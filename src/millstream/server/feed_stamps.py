"""What the server adds to the records of feeds: the time `at`, ids of posts, and the ratio.

Times rise from record to record, in the order of the log, also over restarts of the server. The
application takes the records of a batch by their times: a delete whose time was before its post's
would do nothing. A client may bring a time of its own, which must not be far ahead of the server's
clock. A post keeps it, as posts do that are moved here from elsewhere; of any other record it
counts only if it is later than all times before it.

A record is checked when its body comes, and stamped just before it is appended: whoever is stamped
later is appended later. What a client wrote is stored as it came, with these fields added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from millstream.errors import InputError
from millstream.feeds.records import checked as checked_record
from millstream.nesting import too_deep
from millstream.server.records import BOM, LINE_BYTES, MANY, Checked, pieces

AHEAD = 60_000_000
"""Microseconds that a client's time may be ahead of the server's clock."""
MOST_LINES = 20_000
"""In one body: they are stamped in one go."""

_decode = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class Stamps:
    """Times for the records of one log, each greater than all before it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self._last = 0

    @property
    def latest(self) -> int:
        """The latest time that counts. One that is far ahead would push all others there."""
        return self.clock() + AHEAD

    def are_below(self, at: int) -> bool:
        """Whether a time is later than all there are."""
        return self._last < at

    def learn(self, at: int | None) -> None:
        """A time that is in the log."""
        if at is not None and self._last < at <= self.latest:
            self._last = at

    def next(self) -> int:
        self._last = max(self._last + 1, self.clock())
        return self._last


def made_id(at: int) -> str:
    """The id of a post whose client gave it none; no other has its time.

    >>> made_id(1_700_000_000_000_000)
    '60a24181e4000'
    """
    return f"{at:x}"


class FeedRecords(Checked):
    """Records that were accepted, beside their lines."""

    __slots__ = ("ids", "records")

    def __init__(self) -> None:
        super().__init__()
        self.records: list[dict[str, Any]] = []
        self.ids: list[str] = []
        """Of the posts among them, once they are stamped."""


class FeedCheck:
    """Tells records of feeds from what is none, and stamps them. See `streams.Check`."""

    most_lines = MOST_LINES
    many_types = MANY

    def __init__(self, stamps: Stamps, ratio: Callable[[], float | None]) -> None:
        self._stamps = stamps
        self._ratio = ratio

    def one(self, body: bytes) -> Checked:
        checked = FeedRecords()
        try:
            line = msgspec.json.format(body.removeprefix(BOM), indent=-1)
            self._take(line, checked)
        except Exception as error:
            checked.refuse(1, body, error)
        return checked

    def many(self, body: bytes) -> Iterator[Checked]:
        checked = FeedRecords()
        number = 0
        for piece in pieces(body.removeprefix(BOM)):
            for line in piece.split(b"\n"):
                number += 1
                line = line.replace(b"\r", b" ").strip()
                if line:
                    try:
                        self._take(line, checked)
                    except Exception as error:  # whatever is strange in it, it is only its line
                        checked.refuse(number, line, error)
            yield checked

    def lines(self, checked: Checked) -> list[bytes]:
        """Stamped now, in their order."""
        assert isinstance(checked, FeedRecords)
        ratio = self._ratio()
        found = []
        for line, record in zip(checked.lines, checked.records, strict=True):
            brought = record.keys()
            added = stamped(record, self._stamps, ratio)
            found.append(with_fields(line, added, anew=not brought.isdisjoint(added)))
            record |= added
            if record["kind"] == "post":
                checked.ids.append(record["id"])
        return found

    def _take(self, line: bytes, checked: FeedRecords) -> None:
        """Raise if the line cannot be accepted."""
        if len(line) > LINE_BYTES:
            raise InputError(f"a line must not be longer than {LINE_BYTES} bytes; got {len(line)}")
        record = _decode(line)
        if too_deep(line):
            raise RecursionError
        now = self._stamps.clock()
        if isinstance(record, dict):
            given = {"at": now, **({"id": "-"} if record.get("kind") == "post" else {}), **record}
            at = checked_record(given)["at"]
            if at > self._stamps.latest:
                raise InputError(
                    f"at must not be over {AHEAD // 1_000_000} seconds ahead of the server, "
                    f"whose clock is at {now}; got {at}: leave it out to have it stamped"
                )
        else:
            checked_record(record)
        checked.lines.append(line)
        checked.records.append(record)


def stamped(record: dict[str, Any], stamps: Stamps, ratio: float | None) -> dict[str, Any]:
    """What a record is given: what it lacks, and the ratio if one was measured."""
    added: dict[str, Any] = {}
    kind = record["kind"]
    if "at" in record and (kind == "post" or stamps.are_below(record["at"])):
        stamps.learn(record["at"])
    else:
        added["at"] = stamps.next()
    if kind == "post" and "id" not in record:
        added["id"] = made_id(added.get("at") or stamps.next())
    if kind in ("post", "view") and ratio is not None:
        added["ratio"] = ratio  # what was measured here, whatever the client says
    return added


def with_fields(line: bytes, added: dict[str, Any], *, anew: bool) -> bytes:
    r"""The line of a record with these fields too; `anew` if it may have one of them already.

    >>> with_fields(b'{"kind": "delete", "big": 1e400}', {"at": 7}, anew=False)
    b'{"kind": "delete", "big": 1e400,"at":7}'
    >>> with_fields(b'{"kind":"post","ratio":1.50}', {"ratio": 2.0}, anew=True)
    b'{"kind":"post","ratio":2.0}'
    """
    if not added:
        return line
    if anew:
        parts = _decode_parts(line)
        return _encode(parts | {name: msgspec.Raw(_encode(of)) for name, of in added.items()})
    return line[:-1] + b"," + _encode(added)[1:]
