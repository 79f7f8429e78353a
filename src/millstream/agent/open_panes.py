"""The panes of a node that have not ended: several, if records may come late by some time.

A pane ends when a record has come whose time is `lateness` or more after the end of the pane. Until
then a record goes into its own pane, in whatever order they come. So when a pane ends, those after
it may have records already. They are written with the restart point (`carried`): an agent that goes
on there reads exactly what comes after the last line that it took.

A node counts the records that it has read. What it tells at the end of a pane is how many of them
are of panes that have ended, so that the root finds nothing amiss where two panes meet.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from millstream.agent.restart import CarriedPane, Counts, Restart
from millstream.codec import encode_value
from millstream.errors import CodecError
from millstream.windows.making import Maker, Making
from millstream.windows.message import Message

LONGEST_RUN = 100_000
"""Panes without records that are told; after more the node says where it is, as if it began."""


class OpenPanes:
    """What has not ended. One thread."""

    def __init__(self, maker: Maker, lateness: int, restart: Restart) -> None:
        self._maker, self._lateness = maker, lateness
        self.making = restart.making()
        """The pane that lines go into now; it has the counts of the reading, too."""
        self._others: dict[int, Making] = {}
        self._written: dict[int, tuple[tuple[int, ...], CarriedPane]] = {}
        """Panes as they were carried last, and the counts that they had."""
        self.oldest = self.making.pane
        """The pane that ends next; None: no record has come yet."""
        self._begun = self.oldest is not None
        """Whether the root was told where the node begins."""
        for carried in restart.open:
            self.enter(carried.pane)
            self._restore(carried)

    @property
    def all(self) -> list[Making]:
        """The panes that have not ended and that were entered, the oldest first."""
        open_panes = [*self._others.values(), self.making]
        return sorted((one for one in open_panes if one.pane is not None), key=_number)

    @property
    def newest(self) -> Making:
        """The latest of them."""
        return self.all[-1] if self._others else self.making

    @property
    def any(self) -> bool:
        """Whether there is anything in them."""
        return bool(self.counts.all) or any(making.gap for making in self.all)

    @property
    def counts(self) -> Counts:
        """What became of the records of panes that have not ended."""
        sums = Counts()
        for one in (*self._others.values(), self.making):
            sums = sums.plus(_counts(one))
        return sums

    @property
    def due(self) -> int | None:
        """The position from which on a record ends the oldest pane; None: there is no pane."""
        if self.oldest is None:
            return None
        return (self.oldest + 1) * self._maker.job.span.pane + self._lateness

    def ended_by(self, position: int) -> int:
        """Up to which pane all have ended, if a record has come at a position."""
        return self._maker.job.span.pane_of(position - self._lateness)

    def begin(self, pane: int) -> Message:
        """The first pane is known; what is said of that."""
        self.oldest, self._begun, self.making.pane = pane, True, pane
        return self._maker.begun(self.making)

    def begin_about(self, position: int) -> None:
        """The first record is at a position, and others that come may be before it: where the node
        begins is said when no pane can come any more that is before the first one."""
        self.oldest = self.ended_by(position)

    def enter(self, pane: int) -> bool:
        """Let lines go into a pane; whether it is a new one."""
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

    def end(self, until: int) -> Iterator[Message]:
        """End the panes up to `until`; `making` has no pane then, if it was one of them."""
        at = self.oldest
        assert at is not None
        if not self._begun:
            first = _number(self.all[0])
            self.oldest = at = min(until, first)
            if until < first:
                return
            self._begun = True
            yield self._run(at, at)
        for one in [one for one in self.all if _number(one) < until]:
            pane = _number(one)
            if at < pane:
                yield self._run(at, pane)
            yield self._ended(one, pane)
            at = pane + 1
        if until - at >= LONGEST_RUN:
            yield self._run(until, until)
        elif at < until:
            yield self._run(at, until)
        self.oldest = max(at, until)

    def carried(self, until: int) -> list[CarriedPane]:
        """The panes from `until` on that have something in them, for the restart point."""
        later = [one for one in self.all if _number(one) >= until]
        return [self._carried(one) for one in later if any(_counts(one).listed) or one.gap]

    def over(self) -> Message:
        """Says that the log has ended: nothing comes from the pane on that would end next."""
        assert self.oldest is not None
        return {**self._run(self.oldest, self.oldest), "over": True}

    @property
    def _told(self) -> int:
        """How many records are of panes that have ended."""
        return self.making.read - self.counts.all

    def _ended(self, making: Making, pane: int) -> Message:
        self._others.pop(pane, None)
        self._written.pop(pane, None)
        [message] = self._maker.end(making, pane + 1)
        making.pane = None
        for manifest in message["nodes"].values():
            manifest["total"] = self._told
        return message

    def _run(self, pane: int, until: int) -> Message:
        """What is said of panes without records or, if there are none, of where the node is."""
        return {**self._maker.begun(Making(pane=pane, read=self._told)), "until": until}

    def _carried(self, making: Making) -> CarriedPane:
        """A pane as JSON; it is written anew only if it has changed."""
        pane, content = _number(making), (*_counts(making).listed, making.gap)
        known = self._written.get(pane)
        if known is None or known[0] != content:
            write = self._maker.job.merging.write
            try:
                partials = encode_value({key: write(one) for key, one in making.partials.items()})
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
    return Counts(making.records, sum(making.late.values()), making.shed, making.dead)
