"""Lines become panes at an agent (iMR, 4.2): the same as `windows.making`, made quick.

A run of lines that fall into the pane that is being made takes the short way: read, map, combine,
and nothing else. A line that ends a pane, that is late, that cannot be read or that the job does
not take goes the long way. Of a pane that was given up only the times are read; if panes are
counted in records or bytes, not even those. Lines without anything in them are no records.

If records may come late (`lateness`), several panes are open at once (`open_panes`), and a record
that is of another one than the line before it changes the pane that is being made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.agent.combining import combiner
from millstream.agent.dead_letters import DeadLetters, words_of
from millstream.agent.files import LONGEST, Chunk
from millstream.agent.line_times import LOOK_AHEAD, LineTimes, Misdated
from millstream.agent.open_panes import OpenPanes
from millstream.agent.restart import Restart
from millstream.agent.slicing import size_of
from millstream.model.duration import microseconds
from millstream.windows.making import Maker, Making
from millstream.windows.message import Message, Why
from millstream.windows.placed import PlacedJob

FAR = 1 << 62
Where = tuple[str, int]  # a file, and a byte of it
Ended = Callable[[Message, int], None]
"""Takes a message, and which of the lines comes after its panes."""


class Reading:
    """Makes the panes of a node out of lines. One thread."""

    def __init__(
        self,
        placed: PlacedJob,
        node: str,
        tree: str,
        restart: Restart,
        *,
        letters: DeadLetters,
        ended: Ended,
        choose: Callable[[int], Why | None],
        silent: bool = False,
    ) -> None:
        """`choose` says of a pane that begins why it is not to be made, if it is not. `silent`: of
        such a pane no dead letters are kept, since it may be made later."""
        assert placed.logs is not None
        self._span = placed.job.span
        self._maker = Maker(placed.job, node, tree, live=True)
        self._letters = letters
        self._ended = ended
        self._choose = choose
        self._silent = silent
        self._times = LineTimes(placed)
        self._record_of, self._time_of = self._times.record_of, self._times.time_of
        self.first_time = self._times.first_time
        self._after: Sequence[bytes] = ()
        """Lines that follow those that are taken in."""
        self._combine = combiner(placed.job)
        self._counted = self._span.axis in ("records", "bytes")
        self._number_of = self._numbering()
        self._bounds = (0, 0)
        self._extent = (-FAR, FAR)
        if self._span.begin is not None:
            end = FAR if self._span.extent is None else self._span.begin + self._span.extent
            self._extent = (self._span.begin, end)
        self._end = self._span.pane_of(self._extent[1] - 1) + 1
        self._lateness = 0
        if self._span.axis == "time" and self._time_of is not None:
            self._lateness = microseconds(placed.logs.lateness, "logs: lateness")
        self.panes = OpenPanes(self._maker, self._lateness, restart)
        self.over = self.panes.oldest is not None and self.panes.oldest >= self._end
        """Whether the job's extent is over."""
        self.behind = 0
        """How far late records were behind, at most, in microseconds."""
        self._last = 0
        """Where on the axis the newest record of the newest pane is."""
        self.gap_to = restart.gap_to
        """Up to where on the axis lines may have been lost; None: nothing is missing since the last
        line."""
        if self.making.pane is not None and not self.over:
            for making in self.panes.all:
                self.panes.enter(making.pane or 0)
                self._enter(new=True)

    @property
    def making(self) -> Making:
        """The pane that is being made."""
        return self.panes.making

    @property
    def has_times(self) -> bool:
        """Whether records bring their times."""
        return self._time_of is not None

    @property
    def part_done(self) -> float:
        """How much of the newest pane was read, by where its newest record is."""
        low, high = self._bounds_of(self.panes.newest)
        return min(1.0, max(0.0, (self._position(self._last) - low) / (high - low)))

    def place_of(self, line: bytes) -> int | None:
        """Where on the axis a line is, by what it says; None if it does not say."""
        try:
            if self._counted or (self._time_of is None and self._span.axis == "time"):
                return None
            record = self._record_of(line.rstrip(b"\n"))
            ts = 0 if self._time_of is None else self._time_of(record)
            return self._maker.position_of(self.making, record, ts)
        except Exception:
            return None

    def take(
        self,
        lines: Sequence[bytes],
        stamp: int,
        where: Where,
        now: int,
        after: Sequence[bytes] = (),
    ) -> int:
        """Take lines in, in order, which were read in a file from a byte on; the clock is `now`.

        `stamp` is the time of records that bring none. `after` are some lines that follow. How many
        were taken: less than all when the job's extent is over.
        """
        at, self._after = 0, after
        while at < len(lines) and not self.over:
            if self.making.pane is not None:
                given_up = self.making.given_up is not None
                at = (
                    self._skip(lines, at, stamp) if given_up else self._run(lines, at, stamp, where)
                )
            if at:  # what was lost was before this line
                self.gap_to = None
            if at < len(lines) and self._one(lines, at, stamp, where, now):
                at += 1
        return at

    def begin(self, pane: int, at: int = 0) -> None:
        """The first pane: say that the node is there."""
        self._ended(self.panes.begin(pane), at)
        self._enter(new=True)

    def end(self, until: int, at: int = 0) -> None:
        """End the panes up to `until`; `at`: the line that comes after."""
        self.over = until >= self._end
        until = min(until, self._end)
        for message in self.panes.end(until):
            if message["pane"] < message["until"] and self._may_miss(message["pane"]):
                for told in message["nodes"].values():
                    told.setdefault("gap", -1)
            self._ended(message, at)
        if self.over:
            self.making.pane = until
        elif self.making.pane is None:
            self._go_to(max(until, self.panes.newest.pane or until))
        else:
            self._enter(new=False)

    def missing(self, size: int, now: int) -> None:
        """Lines were lost, of `size` bytes as far as is known, and found to be `now`.

        They may have been of the panes that are made, of that of the next line, and of all between.
        """
        known = self.making.gap
        self.making.gap = -1 if not size or known < 0 else known + size
        here, oldest, newest = self.making.pane, self.panes.oldest, self.panes.newest.pane
        if here is not None and oldest is not None and newest is not None:
            for pane in range(oldest, newest + 1):
                if pane != here:
                    self._go_to(pane)
                    self.making.gap = -1
            self._go_to(here)
        self.gap_to = now if self._span.axis == "time" else FAR

    def give_up(self, making: Making, why: Why) -> None:
        """Make no more of a pane."""
        if making.given_up is None:
            self._maker.give_up(making, why)

    def leave_out(self, chunk: Chunk) -> None:
        """Count a line that is too long to be read."""
        error = f"the line has {chunk.size:,} bytes, and a line may have {LONGEST:,}"
        self._dead(chunk.size, (str(chunk.file.path), chunk.start), chunk.data, error)

    def _dead(self, size: int, where: Where, line: bytes, error: str, **doubt: Any) -> None:
        """Count a line as dead; `doubt`: of its time (`Maker.dead`)."""
        if not self._silent or self.making.given_up is None:
            self._letters.add(*where, line, error)
        self._maker.dead(self.making, size, **doubt)

    def _may_miss(self, pane: int) -> bool:
        """Whether lines that were lost may have been of a pane, in which nothing was read yet."""
        return self.gap_to is not None and pane * self._span.pane <= self.gap_to

    def _go_to(self, pane: int) -> None:
        """Let lines go into a pane."""
        self._enter(new=self.panes.enter(pane))

    def _enter(self, *, new: bool) -> None:
        """A pane begins, or is gone on with."""
        making = self.making
        assert making.pane is not None
        low, high = self._bounds_of(making)
        # In a run of lines of one pane none ends another.
        due = self.panes.due if self._lateness else None
        self._bounds = low, high if due is None else min(high, due)
        if not new:
            return
        if self._may_miss(making.pane):  # nobody knows how much of what was lost was its
            making.gap = -1
        if making is self.panes.newest:
            self._last = low
        why = self._choose(making.pane) if making.given_up is None else None
        if why is not None:
            self._maker.give_up(making, why)

    def _bounds_of(self, making: Making) -> tuple[int, int]:
        low, high = ((making.pane or 0) + one for one in (0, 1))
        size = self._span.pane
        return max(low * size, self._extent[0]), min(high * size, self._extent[1])

    def _numbering(self) -> Callable[[Any, int], int] | None:
        """Where a record is on the axis, if that is not its time; what is counted is `_reach`ed."""
        axis = self._span.axis
        if axis == "time":
            return None
        if axis == "sequence":
            return lambda record, ts: self._maker.position_of(self.making, record, ts)
        return lambda record, ts: self._position(0)

    def _position(self, last: int) -> int:
        """Where the pane was read to on its axis, if `last` is the newest time or number."""
        if self._span.axis == "records":
            return self.making.read + self.making.outside
        return self.making.read_bytes if self._span.axis == "bytes" else last

    def _run(self, lines: Sequence[bytes], at: int, stamp: int, where: Where) -> int:
        """Take the lines of the pane that is made, as far as they are of it; gives the next one."""
        low, high = self._bounds
        record_of, time_of, number_of = self._record_of, self._time_of, self._number_of
        records: list[Any] = []
        times: list[int] = []
        try:
            for line in lines[at : self._reach(lines, at)]:
                if not line:
                    break
                record = record_of(line)
                ts = stamp if time_of is None else time_of(record)
                if not low <= (ts if number_of is None else number_of(record, ts)) < high:
                    break
                records.append(record)
                times.append(ts)
        except Exception:
            pass  # it is looked at again, alone
        if records:
            self._take(records, times, lines, at, where)
        return at + len(records)

    def _take(
        self, records: list[Any], times: list[int], lines: Sequence[bytes], at: int, where: Where
    ) -> None:
        """Combine records into the pane, which are those of the lines from one on."""
        making, size = self.making, size_of(lines[at : at + len(records)])
        failed = self._combine(making.partials, records)
        making.read += len(records)
        making.read_bytes += size
        if self._span.axis == "sequence":
            self._last = self._maker.position_of(making, records[-1], 0)
        elif not self._lateness or times[-1] > self._last:
            self._last = times[-1]
        for index, error in reversed(failed):
            line = lines[at + index]
            self._letters.add(*_place(where, lines, at + index), line, words_of(error))
            making.dead += 1
            size -= len(line) + 1
            del times[index]
        if times:
            making.records += len(times)
            making.bytes += size
            first, last = min(times), max(times)
            making.first = first if making.first is None else min(first, making.first)
            making.last = last if making.last is None else max(last, making.last)

    def _skip(self, lines: Sequence[bytes], at: int, stamp: int) -> int:
        """Count the lines of a pane that was given up; the next one."""
        making, (low, high) = self.making, self._bounds
        stop = self._reach(lines, at)
        if self._span.axis == "sequence" or (self._span.axis == "time" and self._time_of):
            stop = self._end_of_skipped(lines, at)
        elif self._span.axis == "time" and not low <= stamp < high:
            stop = at
        skipped = [line for line in lines[at:stop] if line]
        size = size_of(skipped)
        making.shed += len(skipped)
        making.shed_bytes += size
        making.read += len(skipped)
        making.read_bytes += size
        return stop

    def _end_of_skipped(self, lines: Sequence[bytes], at: int) -> int:
        """The next line that is not of the pane, by its time or number, or that has none."""
        (low, high), record_of, time_of = self._bounds, self._record_of, self._time_of
        number_of = self._number_of
        end = at
        try:
            for end in range(at, len(lines)):
                record = record_of(lines[end])
                ts = 0 if time_of is None else time_of(record)
                on = ts if number_of is None else number_of(record, ts)
                if not low <= on < high:
                    return end
                self._last = max(on, self._last) if self._lateness else on
        except Exception:
            return end
        return len(lines)

    def _reach(self, lines: Sequence[bytes], at: int) -> int:
        """Up to which line the pane can go, if it is counted in records or bytes."""
        position = self._position(0)
        if self._span.axis == "records":
            return min(len(lines), at + max(0, self._bounds[1] - position))
        if self._span.axis == "bytes":
            while at < len(lines) and position < self._bounds[1]:
                position += len(lines[at]) + 1 if lines[at] else 0
                at += 1
            return at
        return len(lines)

    def _one(self, lines: Sequence[bytes], at: int, stamp: int, where: Where, now: int) -> bool:
        """Look at one line alone. True if it is done with; False: it is now of the pane."""
        line, making = lines[at], self.making
        if not line:
            return True
        size = len(line) + 1
        if self._counted and making.pane is not None:  # a line has its place, whatever it says
            pane = self._span.pane_of(self._position(0))
            if pane > making.pane and self._span.takes(self._position(0)):
                self.end(pane, at)
                return False
        try:
            record = self._record_of(line)
            ts = stamp if self._time_of is None else self._time_of(record)
            position = self._maker.position_of(making, record, ts)
            pane = self._span.pane_of(position)
            if self._span.axis == "time" and pane != making.pane:
                self._times.check_ahead(position, now)
            # A log that is read again for its rounds must give the same: no line judges another.
            if self._span.axis == "time" and not self._silent:
                following = (*lines[at + 1 : at + 1 + LOOK_AHEAD], *self._after)[:LOOK_AHEAD]
                known = None if making.pane is None else self._last
                self._times.check_jump(position, known, following)
        except Exception as error:
            misdated = isinstance(error, Misdated)
            claims = pane if isinstance(error, Misdated) and error.plausible else None
            place, words = _place(where, lines, at), words_of(error)
            self._dead(size, place, line, words, misdated=misdated, claims=claims)
            return True
        if not self._span.takes(position):
            if position - self._lateness >= self._extent[1] and making.pane is not None:
                self.end(FAR, at)
            else:
                making.outside += 1
                making.read_bytes += size
            return True
        if making.pane is None and self._lateness:
            self.panes.begin_about(position)
            self._go_to(pane)
            return False
        if making.pane is None:
            self.begin(pane, at)
            return False
        oldest, until = self.panes.oldest, self.panes.ended_by(position)
        assert oldest is not None
        if until > oldest:
            self.end(until, at)
            self._go_to(pane)
            return False
        if pane < oldest:
            if self._span.axis == "time":
                self.behind = max(self.behind, (oldest - pane) * self._span.pane)
            making.late[str(pane)] = making.late.get(str(pane), 0) + 1
            making.read += 1
            making.read_bytes += size
            return True
        if pane != making.pane:
            self._go_to(pane)
            return False
        self._take([record], [ts], lines, at, where)
        return True


def _place(where: Where, lines: Sequence[bytes], at: int) -> Where:
    return where[0], where[1] + size_of(lines[:at])
