"""The panes of a node that have not ended: several, if records may be out of order (`lateness`).

A pane ends when a record comes whose time is `lateness` or more after the end of the pane. Until
then each record goes into its own pane, in any order of arrival. So when a pane ends, later panes
may have records already. They are written with the restart point (`carried`): an agent that
resumes there reads exactly the lines after the last one that it took.

A node counts the records that it has read. At the end of a pane it reports how many of them are in
panes that have ended, so that the root's counts agree where two panes meet.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from millstream.agent.panes.restart import CarriedPane, Counts, Restart
from millstream.codec import encode_value
from millstream.errors import CodecError
from millstream.windows.panes.message import Message
from millstream.windows.panes.pane_maker import Maker, Making


class OpenPanes:
    """The panes that have not ended. Used by one thread."""

    def __init__(self, maker: Maker, lateness: int, restart: Restart) -> None:
        self._maker, self._lateness = maker, lateness
        self.making = restart.making()
        """The pane that lines go into now. It also has the counts of the whole reading."""
        self._others: dict[int, Making] = {}
        self._written: dict[int, tuple[tuple[int, ...], CarriedPane]] = {}
        """Each pane as it was last carried, and the counts that it had then."""
        self.oldest = self.making.pane
        """The pane that ends next; None if no record has come yet."""
        self._begun = self.oldest is not None
        """True if the root was told where the node begins."""
        for carried in restart.open:
            self.enter(carried.pane)
            self._restore(carried)

    @property
    def all(self) -> list[Making]:
        """The open panes that lines have gone into, oldest first."""
        open_panes = [*self._others.values(), self.making]
        return sorted((making for making in open_panes if making.pane is not None), key=_number)

    @property
    def newest(self) -> Making:
        """The latest open pane."""
        return self.all[-1] if self._others else self.making

    @property
    def any(self) -> bool:
        """True if there is anything in the open panes."""
        return bool(self.counts.all) or any(making.gap for making in self.all)

    @property
    def counts(self) -> Counts:
        """The counts of the records in all open panes."""
        sums = Counts()
        for making in (*self._others.values(), self.making):
            sums = sums.plus(_counts(making))
        return sums

    @property
    def due(self) -> int | None:
        """A record at this position or after it ends the oldest pane; None if there is no pane."""
        if self.oldest is None:
            return None
        return (self.oldest + 1) * self._maker.job.span.pane + self._lateness

    def ended_by(self, position: int) -> int:
        """Returns the pane before which all panes end when a record comes at a position."""
        return self._maker.job.span.pane_of(position - self._lateness)

    def begin(self, pane: int) -> Message:
        """Begin with the first pane. Returns the message that tells the root."""
        self.oldest, self._begun, self.making.pane = pane, True, pane
        return self._maker.begun(self.making)

    def begin_about(self, position: int) -> None:
        """Begin near the position of the first record. Later records may be before it, so the root
        is told where the node begins only when no earlier pane can come any more."""
        self.oldest = self.ended_by(position)

    def enter(self, pane: int) -> bool:
        """Make a pane the one that lines go into. True if it is new."""
        old = self.making
        if old.pane == pane:
            return False
        known = self._others.pop(pane, None)
        if old.pane is None and known is None:
            old.pane = pane
            return True
        making = Making(pane=pane) if known is None else known
        making.read, making.read_bytes, making.outside = old.read, old.read_bytes, old.outside
        if old.pane is not None:
            self._others[old.pane] = old
        else:  # dead letters that came when there was no pane yet
            making.dead += old.dead
            making.misdated += old.misdated
            for claimed, count in old.claimed.items():
                making.claimed[claimed] = making.claimed.get(claimed, 0) + count
        self.making = making
        return known is None

    def cut(self) -> None:
        """Mark the newest pane as cut by the end of the log."""
        self._maker.cut(self.newest)

    def end(self, until: int) -> Iterator[Message]:
        """End the panes before `until`, and yield their messages. If `making` was one of them, it
        has no pane afterwards."""
        at = self.oldest
        assert at is not None
        if not self._begun:
            first = _number(self.all[0])
            self.oldest = at = min(until, first)
            if until < first:
                return
            self._begun = True
            yield self._run(at, at)
        for making in [making for making in self.all if _number(making) < until]:
            pane = _number(making)
            if at < pane:
                yield self._run(at, pane)
            yield self._ended(making, pane)
            at = pane + 1
        if at < until:
            yield self._run(at, until)
        self.oldest = max(at, until)

    def carried(self, until: int) -> list[CarriedPane]:
        """Returns the panes from `until` on that are not empty, for the restart point."""
        later = [making for making in self.all if _number(making) >= until]
        filled = [making for making in later if any(_counts(making).listed) or making.gap]
        return [self._carried(making) for making in filled]

    def over(self, pane: int) -> Message:
        """Returns the message that the log has ended: nothing comes from `pane` on."""
        return replace(self._run(pane, pane), over=True)

    @property
    def _told(self) -> int:
        """The number of records in panes that have ended."""
        return self.making.read - self.counts.all

    def _ended(self, making: Making, pane: int) -> Message:
        self._others.pop(pane, None)
        self._written.pop(pane, None)
        [message] = self._maker.end(making, pane + 1)
        making.pane = None
        for manifest in message.nodes.values():
            manifest.total = self._told
        return message

    def _run(self, pane: int, until: int) -> Message:
        """Returns the message of a run of empty panes. If `pane` equals `until`, it only says where
        the node is."""
        return replace(self._maker.begun(Making(pane=pane, read=self._told)), until=until)

    def _carried(self, making: Making) -> CarriedPane:
        """Returns a pane as JSON; encodes it anew only if it has changed."""
        pane, content = _number(making), (*_counts(making).listed, making.gap)
        known = self._written.get(pane)
        if known is None or known[0] != content:
            write = self._maker.job.merging.write
            try:
                values = {key: write(partial) for key, partial in making.partials.items()}
                partials = encode_value(values)
            except CodecError:  # it could not be sent either
                self._maker.give_up(making, "memory")
                partials = b"{}"
            known = (
                content,
                CarriedPane(
                    pane=pane,
                    records=making.records,
                    bytes=making.bytes,
                    shed=making.shed,
                    shed_bytes=making.shed_bytes,
                    dead=making.dead,
                    first=making.first,
                    last=making.last,
                    late=dict(making.late),
                    given_up=making.given_up,
                    gap=making.gap,
                    partials=msgspec.Raw(partials),
                    misdated=making.misdated,
                    claimed=dict(making.claimed),
                ),
            )
            self._written[pane] = known
        return known[1]

    def _restore(self, carried: CarriedPane) -> None:
        read, making = self._maker.job.merging.read, self.making
        for name in ("records", "bytes", "shed", "shed_bytes", "dead", "misdated"):
            setattr(making, name, getattr(carried, name))
        making.first, making.last, making.gap = carried.first, carried.last, carried.gap
        making.given_up, making.late = carried.given_up, dict(carried.late)
        making.claimed = dict(carried.claimed)
        making.partials = {key: read(value) for key, value in carried.partials.items()}


def _number(making: Making) -> int:
    assert making.pane is not None
    return making.pane


def _counts(making: Making) -> Counts:
    late = sum(making.late.values())
    return Counts(making.records, late, making.shed, making.dead, making.misdated)
