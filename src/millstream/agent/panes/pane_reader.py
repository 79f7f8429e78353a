"""Makes panes of lines at an agent (iMR, 4.2): a fast version of `windows.panes.pane_maker`.

A run of lines that belong to the current pane takes the fast path: parse, map, combine, and nothing
else. A line that ends a pane, that is late, that cannot be parsed or that the job does not take
goes the slow path, alone. In a pane that was given up, only times are parsed, and not even those if
panes are counted in records or bytes. Empty lines are not records.

With `lateness` several panes are open (`open_panes`). A record makes its pane the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.agent.log.line_slices import size_of
from millstream.agent.log.line_times import LOOK_AHEAD, LineTimes, Misdated
from millstream.agent.log.log_files import LONGEST, LineChunk
from millstream.agent.panes.dead_letters import DeadLetters, words_of
from millstream.agent.panes.open_panes import OpenPanes
from millstream.agent.panes.pane_combiner import combiner
from millstream.agent.panes.restart import Restart
from millstream.model.duration import microseconds
from millstream.windows.panes.message import Message, Why
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.placed import PlacedJob

FAR = 1 << 62
Where = tuple[str, int]  # a file, and an offset in it
Ended = Callable[[Message, int], None]
"""Takes a message, and the index of the line that comes after its panes."""


class PaneReader:
    """Makes the panes of a node from lines. Used by one thread."""

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
        """`choose` returns the reason not to make a pane that begins, or None. `silent`: dead
        letters of such panes are not kept, since the panes may be made later."""
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
        """Some lines that follow those being taken."""
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
        """True if the job's extent is over."""
        self.behind = 0
        """The longest time that a late record was behind, in microseconds."""
        self._last = 0
        """The place on the axis of the newest record of the newest pane."""
        self.gap_to = restart.gap_to
        """Lines may have been lost up to this place on the axis; None: none since the last line."""
        if self.making.pane is not None and not self.over:
            for making in self.panes.all:
                self.panes.enter(making.pane or 0)
                self._enter(new=True)

    @property
    def making(self) -> Making:
        """The current pane."""
        return self.panes.making

    @property
    def has_times(self) -> bool:
        """True if records have times of their own."""
        return self._time_of is not None

    @property
    def part_done(self) -> float:
        """The fraction of the newest pane that was read, by the place of its newest record."""
        low, high = self._bounds_of(self.panes.newest)
        return min(1.0, max(0.0, (self._position(self._last) - low) / (high - low)))

    def place_of(self, line: bytes) -> int | None:
        """Returns the place of a line on the axis, by its own content; None if it has none."""
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
        """Add lines to the panes, in order. `where` is the file and the offset of the first.

        `stamp` is the time for records without one, `now` the clock; `after` are some lines that
        follow. Returns how many were taken: fewer than all if the job's extent is over.
        """
        at, self._after = 0, after
        while at < len(lines) and not self.over:
            if self.making.pane is not None:
                given_up = self.making.given_up is not None
                at = (
                    self._skip(lines, at, stamp) if given_up else self._run(lines, at, stamp, where)
                )
            if at:  # the gap was before this line
                self.gap_to = None
            if at < len(lines) and self._take_alone(lines, at, stamp, where, now):
                at += 1
        return at

    def begin(self, pane: int, at: int = 0) -> None:
        """Begin with the first pane, and report where the node begins."""
        self._ended(self.panes.begin(pane), at)
        self._enter(new=True)

    def end(self, until: int, at: int = 0) -> None:
        """End the panes before `until`; `at` is the index of the line that comes after."""
        self.over = until >= self._end
        until = min(until, self._end)
        for message in self.panes.end(until):
            if message.pane < message.until and self._may_miss(message.pane):
                for manifest in message.nodes.values():
                    manifest.gap = manifest.gap or -1
            self._ended(message, at)
        if self.over:
            self.making.pane = until
        elif self.making.pane is None:
            self._go_to(max(until, self.panes.newest.pane or until))
        else:
            self._enter(new=False)

    def missing(self, size: int, now: int) -> None:
        """Record a gap: lines of `size` known bytes (or more) were found to be lost, at time `now`.

        They may have been in any open pane, in that of the next line, and in all between.
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
        """Stop making a pane."""
        if making.given_up is None:
            self._maker.give_up(making, why)

    def leave_out(self, chunk: LineChunk) -> None:
        """Count a line that is too long to be read."""
        error = f"the line has {chunk.size:,} bytes, and a line may have {LONGEST:,}"
        self._dead(chunk.size, (str(chunk.file.path), chunk.start), chunk.data, error)

    def _dead(self, size: int, where: Where, line: bytes, error: str, **doubt: Any) -> None:
        """Count a line as dead. `doubt` has the arguments of `Maker.dead` about its time."""
        if not self._silent or self.making.given_up is None:
            self._letters.add(*where, line, error)
        self._maker.dead(self.making, size, **doubt)

    def _may_miss(self, pane: int) -> bool:
        """True if lost lines may have been in a pane of which nothing was read yet."""
        return self.gap_to is not None and pane * self._span.pane <= self.gap_to

    def _go_to(self, pane: int) -> None:
        """Make a pane the current one."""
        self._enter(new=self.panes.enter(pane))

    def _enter(self, *, new: bool) -> None:
        """Set up the current pane, which begins or is resumed."""
        making = self.making
        assert making.pane is not None
        low, high = self._bounds_of(making)
        # A run of lines of one pane must not contain a line that ends another pane.
        due = self.panes.due if self._lateness else None
        self._bounds = low, high if due is None else min(high, due)
        if not new:
            return
        if self._may_miss(making.pane):  # it is unknown how many of the lost bytes were in it
            making.gap = -1
        if making is self.panes.newest:
            self._last = low
        why = self._choose(making.pane) if making.given_up is None else None
        if why is not None:
            self._maker.give_up(making, why)

    def _bounds_of(self, making: Making) -> tuple[int, int]:
        pane, size = making.pane or 0, self._span.pane
        return max(pane * size, self._extent[0]), min((pane + 1) * size, self._extent[1])

    def _numbering(self) -> Callable[[Any, int], int] | None:
        """Returns a function that places a record on the axis; None if the axis is time. If panes
        are counted in records or bytes, `_reach` finds their end."""
        axis = self._span.axis
        if axis == "time":
            return None
        if axis == "sequence":
            return lambda record, ts: self._maker.position_of(self.making, record, ts)
        return lambda record, ts: self._position(0)

    def _position(self, last: int) -> int:
        """Returns the position reached on the axis. `last` is the newest time or number."""
        if self._span.axis == "records":
            return self.making.read + self.making.outside
        return self.making.read_bytes if self._span.axis == "bytes" else last

    def _run(self, lines: Sequence[bytes], at: int, stamp: int, where: Where) -> int:
        """Take a run of lines of the current pane (fast path). Returns the index of the next."""
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
            pass  # `_take_alone` looks at this line again
        if records:
            self._take(records, times, lines, at, where)
        return at + len(records)

    def _take(
        self, records: list[Any], times: list[int], lines: Sequence[bytes], at: int, where: Where
    ) -> None:
        """Combine records into the current pane; they are those of the lines from `at` on."""
        making, size = self.making, size_of(lines[at : at + len(records)])
        failed = self._combine(making.partials, records)
        self._times.doubted = None
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
        """Count lines of a current pane that was given up. Returns the index of the next line."""
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
        """Returns the index of the next line outside the pane, or without a time or number."""
        (low, high), record_of, time_of = self._bounds, self._record_of, self._time_of
        number_of = self._number_of
        end = at
        try:
            for end in range(at, len(lines)):
                record = record_of(lines[end])
                ts = 0 if time_of is None else time_of(record)
                place = ts if number_of is None else number_of(record, ts)
                if not low <= place < high:
                    return end
                self._last = max(place, self._last) if self._lateness else place
        except Exception:
            return end
        return len(lines)

    def _reach(self, lines: Sequence[bytes], at: int) -> int:
        """Returns the line at which the pane is full, if it is counted in records or bytes."""
        position = self._position(0)
        if self._span.axis == "records":
            return min(len(lines), at + max(0, self._bounds[1] - position))
        if self._span.axis == "bytes":
            while at < len(lines) and position < self._bounds[1]:
                position += len(lines[at]) + 1 if lines[at] else 0
                at += 1
            return at
        return len(lines)

    def _take_alone(
        self, lines: Sequence[bytes], at: int, stamp: int, where: Where, now: int
    ) -> bool:
        """Process one line (slow path). False if its pane was only made current: try it again."""
        line, making = lines[at], self.making
        if not line:
            return True
        size = len(line) + 1
        if self._counted and making.pane is not None:  # the place does not depend on the content
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
            # In rounds a log is read again with the same result. So lines are not compared.
            if self._span.axis == "time" and not self._silent:
                following = (*lines[at + 1 : at + 1 + LOOK_AHEAD], *self._after)[:LOOK_AHEAD]
                known = None if making.pane is None else self._last
                self._times.check_jump(position, known, following, now)
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
