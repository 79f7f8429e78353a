"""Panes at a node: records are mapped, grouped and combined once for each pane (iMR, 2.3 and 4.2).

Pure: the agent on a log server and the update on Spark call the same functions. A node reads its
log in order. A pane ends with the first record of a later one, or by time. Panes without records
are reported too, since a silent node might have failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.errors import FunctionError
from millstream.model.path import picker
from millstream.windows.panes.message import Mark, Message, PaneManifest, Why, manifest

if TYPE_CHECKING:
    from millstream.windows.job import Job


@dataclass
class Making:
    """The state of a node: the pane that it is making, and its counts of records read."""

    pane: int | None = None
    """None: nothing was read yet."""
    records: int = 0
    bytes: int = 0
    shed: int = 0
    shed_bytes: int = 0
    dead: int = 0
    first: int | None = None
    """The times of the first and the last record in the pane."""
    last: int | None = None
    late: dict[str, int] = field(default_factory=dict)
    given_up: Why | None = None
    """The reason why the pane will not be made. Its records are only counted."""
    partials: dict[str, Any] = field(default_factory=dict)
    """The combined values by key; as JSON, unless the maker is `live`."""
    outside: int = 0
    """Records before the job's beginning, or after its extent."""
    read: int = 0
    """Records within the job's extent."""
    read_bytes: int = 0
    misdated: int = 0
    """Dead records whose time was implausible."""
    claimed: dict[str, int] = field(default_factory=dict)
    """Misdated records that claim to belong to a pane: pane -> count."""
    gap: int = 0
    """Lost bytes that may have belonged to the pane. -1: their number is not known."""
    cut: bool = False
    """True for a pane of counts that ended because the log ended."""
    missed: int = 0
    """Late records that the stream's order has set aside. They are among those `read`, but have no
    position on an axis of counts."""


@dataclass(frozen=True)
class Maker:
    """Makes the panes of a node."""

    job: Job
    node: str
    tree: str = ""
    """The topmost parent. Empty: the node itself."""
    live: bool = False
    """True if partials are kept as values and converted to JSON only when the pane ends. That is
    faster, if the pane is kept in memory."""

    def position_of(self, making: Making, record: Any, ts: int) -> int:
        """Returns the position of the next record on the job's axis. For records and bytes it is
        the node's position in its log."""
        job = self.job
        if job.span.axis == "time":
            return ts
        if job.span.axis == "records":
            return making.read + making.outside - making.missed
        if job.span.axis == "bytes":
            return making.read_bytes
        assert job.sequence is not None
        number = picker(job.sequence, "job: sequence", "record")(record)
        if type(number) is not int:
            raise FunctionError(
                f"job: the field {job.sequence!r} must be a whole number; "
                f"got {type(number).__name__} {number!r}"
            )
        return number

    def take(self, making: Making, record: Any, ts: int, size: int) -> Iterator[Message]:
        """Takes the next record in. Yields the messages of the panes that it ends first.

        If `map` or `combine` raises, the record is not counted: call `dead` then.
        """
        position = self.position_of(making, record, ts)
        if not self.job.span.takes(position):
            making.outside += 1
            making.read_bytes += size
            return
        pane = self.job.span.pane_of(position)
        if making.pane is None:
            making.pane = pane
        elif pane > making.pane:
            yield from self.end(making, pane)
        if pane < making.pane:
            making.late[str(pane)] = making.late.get(str(pane), 0) + 1
        elif making.given_up is not None:
            making.shed += 1
            making.shed_bytes += size
        else:
            self._combine(making, record)
            making.records += 1
            making.bytes += size
            making.first = ts if making.first is None else min(ts, making.first)
            making.last = ts if making.last is None else max(ts, making.last)
        making.read += 1
        making.read_bytes += size

    def miss(self, making: Making, record: Any, ts: int, *, now: int) -> None:
        """Counts a late record, which event-time order has set aside. `now` is the time of its
        notice, later than that of any record before. On an axis of counts the record belongs to the
        pane that is being made."""
        position = self.position_of(making, record, ts)
        if not self.job.span.takes(position):
            making.outside += self.job.span.axis in ("time", "sequence")
            return
        if making.pane is None:
            making.pane = self.job.span.pane_of(now if self.job.span.axis == "time" else position)
        pane = min(self.job.span.pane_of(position), making.pane)
        making.late[str(pane)] = making.late.get(str(pane), 0) + 1
        making.read += 1
        making.missed += 1

    def dead(
        self, making: Making, size: int, *, misdated: bool = False, claims: int | None = None
    ) -> None:
        """Counts a record that cannot be read or mapped, in the pane that is being made.
        `misdated`: the record's time was implausible. `claims`: the pane to which the record claims
        to belong."""
        making.dead += 1
        making.misdated += misdated
        if claims is not None:
            making.claimed[str(claims)] = making.claimed.get(str(claims), 0) + 1
        making.read += 1
        making.read_bytes += size

    def give_up(self, making: Making, why: Why) -> None:
        """Gives up this pane: the records that it has, and those still to come, are shed."""
        making.given_up = why
        making.shed += making.records
        making.shed_bytes += making.bytes
        making.records = making.bytes = 0
        making.first = making.last = None
        making.partials = {}

    def cut(self, making: Making) -> None:
        """Notes that the log ends in the pane. This makes no difference to a pane of time, which
        would have the same end."""
        making.cut = self.job.span.axis in ("records", "bytes")

    def end(self, making: Making, until: int) -> Iterator[Message]:
        """Ends the pane that is being made, and the panes without records after it, up to
        `until`."""
        assert making.pane is not None
        yield self._message(
            making.pane, making.pane + 1, self._manifest(making), self._written(making)
        )
        if until > making.pane + 1:
            yield self._message(making.pane + 1, until, manifest("empty", making.read), {})
        making.pane = until
        making.records = making.bytes = making.shed = making.shed_bytes = making.dead = 0
        making.first = making.last = making.given_up = None
        making.gap = making.misdated = 0
        making.cut = False
        making.partials, making.late, making.claimed = {}, {}, {}

    def begun(self, making: Making) -> Message:
        """Returns the message that the node begins with the current pane, and has no earlier
        one."""
        assert making.pane is not None
        return self._message(making.pane, making.pane, manifest("empty", making.read), {})

    def _message(
        self, pane: int, until: int, entry: PaneManifest, partials: dict[str, Any]
    ) -> Message:
        return Message(
            tree=self.tree or self.node,
            pane=pane,
            until=until,
            nodes={self.node: entry},
            partials=partials,
            span=self.job.span.text,
        )

    def _manifest(self, making: Making) -> PaneManifest:
        here: Mark = "data" if making.records else "empty"
        why = making.given_up
        if why is None and making.dead and not making.records:
            why = "unreadable"
        return PaneManifest(
            mark=here if why is None else "lost",
            why=why,
            records=making.records,
            bytes=making.bytes,
            shed=making.shed,
            shed_bytes=making.shed_bytes,
            dead=making.dead,
            late=making.late,
            total=making.read,
            first=making.first,
            last=making.last,
            gap=making.gap,
            misdated=making.misdated,
            claimed=making.claimed,
            cut=making.cut,
        )

    def _written(self, making: Making) -> dict[str, Any]:
        if not self.live:
            return making.partials
        write = self.job.merging.write
        return {key: write(value) for key, value in making.partials.items()}

    def _combine(self, making: Making, record: Any) -> None:
        """Maps a record and combines its pairs into the pane: all of them, or none if it raises."""
        merging, partials = self.job.merging, making.partials
        read, write = (_same, _same) if self.live else (merging.read, merging.write)
        changed: dict[str, Any] = {}
        for key, value in self.job.map(record):
            if type(key) is not str:
                raise FunctionError(
                    f"job: map must yield pairs whose key is text; got {type(key).__name__} {key!r}"
                )
            value = merging.lift(key, value)
            if key in changed:
                value = merging.merge(changed[key], value)
            elif key in partials:
                value = merging.merge(read(partials[key]), value)
            changed[key] = value
        partials.update({key: write(value) for key, value in changed.items()})


def _same(value: Any) -> Any:
    return value
