"""Lines become panes at an agent (iMR, 4.2): the same as `windows.making`, made quick.

A run of lines that fall into the pane that is being made takes the short way: read, map, combine,
and nothing else. A line that ends a pane, that is late, that cannot be read or that the job does
not take goes the long way. Of a pane that was given up only the times are read; if panes are
counted in records or bytes, not even those. Lines without anything in them are no records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.agent.combining import combiner
from millstream.agent.dead_letters import DeadLetters
from millstream.agent.files import LONGEST, Chunk
from millstream.agent.lines import record_reader, time_reader
from millstream.agent.restart import Restart
from millstream.agent.slicing import LOOK_AHEAD
from millstream.errors import InputError, MillstreamError
from millstream.model.duration import microseconds, shown_duration
from millstream.windows.making import Maker
from millstream.windows.message import Message, Why
from millstream.windows.placed import PlacedJob

FAR = 1 << 62
LONGEST_RUN = 100_000
"""Panes without records that are told; after more the node says where it is, as if it began."""
Where = tuple[str, int]
"""A file, and a byte of it."""
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
        self._job = placed.job
        self._span = placed.job.span
        self._maker = Maker(placed.job, node, tree, live=True)
        self.making = restart.making()
        self._letters = letters
        self._ended = ended
        self._choose = choose
        self._silent = silent
        self._record_of = record_reader(placed.logs)
        self._time_of = time_reader(placed.logs, placed.name)
        self._ahead = microseconds(placed.logs.ahead, "logs: ahead")
        self._jump = microseconds(placed.logs.jump, "logs: jump")
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
        self.over = self.making.pane is not None and self.making.pane >= self._end
        """Whether the job's extent is over."""
        self.behind = 0
        """How far late records were behind, at most, in microseconds."""
        self._last = 0
        """Where on the axis the newest record of the pane is."""
        self.gap_to = restart.gap_to
        """Up to where on the axis lines may have been lost; None: nothing is missing since the last
        line."""
        self._mark_gap()
        if self.making.pane is not None and not self.over:
            self._enter()

    @property
    def has_times(self) -> bool:
        """Whether records bring their times."""
        return self._time_of is not None

    @property
    def part_done(self) -> float:
        """How much of the pane was read, by where its newest record is."""
        low, high = self._bounds
        return min(1.0, max(0.0, (self._position(self._last) - low) / (high - low)))

    def first_time(self, line: bytes) -> int | None:
        """The time of a line; None if it has none."""
        try:
            return None if self._time_of is None else self._time_of(self._record_of(line))
        except Exception:
            return None

    def pane_of(self, line: bytes) -> int | None:
        """The pane that a line is in, by what it says; None if it does not say."""
        try:
            if self._counted or (self._time_of is None and self._span.axis == "time"):
                return None
            record = self._record_of(line.rstrip(b"\n"))
            ts = 0 if self._time_of is None else self._time_of(record)
            return self._span.pane_of(self._maker.position_of(self.making, record, ts))
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
        self.making.pane = pane
        self._ended(self._maker.begun(self.making), at)
        self._enter()

    def end(self, until: int, at: int = 0) -> None:
        """End the pane that is made, and those up to `until`; `at`: the line that comes after."""
        assert self.making.pane is not None
        self.over = until >= self._end
        until = min(until, self._end)
        far = until - self.making.pane > LONGEST_RUN
        for message in self._maker.end(self.making, self.making.pane + 1 if far else until):
            if message["pane"] > self.making.pane and self._may_miss(message["pane"]):
                for told in message["nodes"].values():
                    told["gap"] = -1
            self._ended(message, at)
        if far:
            self.making.pane = until
            self._ended(self._maker.begun(self.making), at)
        self._mark_gap()
        if not self.over:
            self._enter()

    def missing(self, size: int, now: int) -> None:
        """Lines were lost, of `size` bytes as far as is known, and found to be `now`.

        They may have been of the pane that is made, of that of the next line, and of all between.
        """
        known = self.making.gap
        self.making.gap = -1 if not size or known < 0 else known + size
        self.gap_to = now if self._span.axis == "time" else FAR

    def give_up(self, why: Why) -> None:
        """Make no more of this pane."""
        if self.making.given_up is None:
            self._maker.give_up(self.making, why)

    def leave_out(self, chunk: Chunk) -> None:
        """Count a line that is too long to be read."""
        error = f"the line has {chunk.size:,} bytes, and a line may have {LONGEST:,}"
        self._dead(chunk.size, (str(chunk.file.path), chunk.start), chunk.data, error)

    def _dead(self, size: int, where: Where, line: bytes, error: str) -> None:
        if not self._silent or self.making.given_up is None:
            self._letters.add(*where, line, error)
        self._maker.dead(self.making, size)

    def _may_miss(self, pane: int) -> bool:
        """Whether lines that were lost may have been of a pane, in which nothing was read yet."""
        return self.gap_to is not None and pane * self._span.pane <= self.gap_to

    def _mark_gap(self) -> None:
        """Of a pane that begins it is not known how much of what was lost was its."""
        if self.making.pane is not None and self._may_miss(self.making.pane):
            self.making.gap = -1

    def _enter(self) -> None:
        """A pane begins."""
        assert self.making.pane is not None
        low, high = self.making.pane * self._span.pane, (self.making.pane + 1) * self._span.pane
        self._bounds = (max(low, self._extent[0]), min(high, self._extent[1]))
        self._last = self._bounds[0]
        why = self._choose(self.making.pane)
        if why is not None:
            self._maker.give_up(self.making, why)

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
        making, size = self.making, _size(lines[at : at + len(records)])
        failed = self._combine(making.partials, records)
        making.read += len(records)
        making.read_bytes += size
        if self._span.axis == "sequence":
            self._last = self._maker.position_of(making, records[-1], 0)
        else:
            self._last = times[-1]
        for index, error in reversed(failed):
            line = lines[at + index]
            self._letters.add(*_place(where, lines, at + index), line, _words(error))
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
        size = _size(skipped)
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
                self._last = on
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
            if self._span.axis == "time" and position > now + self._ahead and pane != making.pane:
                raise InputError(
                    f"its time is more than {shown_duration(self._ahead)} after the clock of this "
                    "machine (logs: ahead)"
                )
            if self._jumps(position, lines, at):
                raise InputError(
                    f"its time is more than {shown_duration(self._jump)} (logs: jump) after the "
                    "line before it, and the lines after it go back"
                )
        except Exception as error:
            self._dead(size, _place(where, lines, at), line, _words(error))
            return True
        if not self._span.takes(position):
            if position >= self._extent[1] and making.pane is not None:
                self.end(FAR, at)
            else:
                making.outside += 1
                making.read_bytes += size
            return True
        if making.pane is None or pane > making.pane:
            if making.pane is None:
                self.begin(pane, at)
            else:
                self.end(pane, at)
            return False
        if pane < making.pane:
            if self._span.axis == "time":
                self.behind = max(self.behind, (making.pane - pane) * self._span.pane)
            making.late[str(pane)] = making.late.get(str(pane), 0) + 1
            making.read += 1
            making.read_bytes += size
            return True
        self._take([record], [ts], lines, at, where)
        return True

    def _jumps(self, position: int, lines: Sequence[bytes], at: int) -> bool:
        """Whether a time is far ahead of the last one, and those of the next lines are nearer to
        that: then it is a mistake, which would make all of them late. (A log that is read again and
        again for its rounds must give the same each time: there no line is judged by others.)"""
        if self._time_of is None or self._span.axis != "time" or self._silent:
            return False
        known = None if self.making.pane is None else self._last
        if known is not None and position - known <= self._jump:
            return False
        following = (*lines[at + 1 : at + 1 + LOOK_AHEAD], *self._after)[:LOOK_AHEAD]
        times = [ts for ts in map(self.first_time, following) if ts is not None]
        if not times:
            return False
        back = min(times)
        return position - back > (self._jump if known is None else abs(back - known))


def _size(lines: Sequence[bytes]) -> int:
    """Bytes of lines, with their ends."""
    return sum(map(len, lines)) + len(lines)


def _place(where: Where, lines: Sequence[bytes], at: int) -> Where:
    return where[0], where[1] + _size(lines[:at])


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, MillstreamError) else f"{type(error).__name__}: {error}"
