"""Makes one job's panes at an agent, from the lines of a reading of the log (`node_log`).

Several jobs may take the lines of one reading. Each has its own panes, counts, outbox and restart
point, and knows nothing of the others. A pane that ends is in the outbox, with the position in the
log after it, before the next slice is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, replace

from msgspec import structs

from millstream.agent.delivery.outbox import Outbox
from millstream.agent.job_status import JobStatus, KeptLetters, SendingStatus
from millstream.agent.limits import Limits
from millstream.agent.log.first_seen_times import FirstSeenTimes
from millstream.agent.log.line_slices import Slice, Slicer, size_of
from millstream.agent.log.log_files import LineChunk, LogGap, Mark
from millstream.agent.log.log_follower import SILENCE, LogFollower
from millstream.agent.log.multiline_records import Framing
from millstream.agent.log_notices import Telling
from millstream.agent.panes.dead_letters import DeadLetters
from millstream.agent.panes.pane_pace import Pacing, Windows
from millstream.agent.panes.pane_reader import FAR, PaneReader
from millstream.agent.panes.pane_remaker import Remaker
from millstream.agent.panes.restart import Restart, restart_from
from millstream.agent.panes.rounds import Region, Rounds
from millstream.agent.panes.sent_panes import SentPanes
from millstream.agent.state import State
from millstream.agent.surroundings import Surroundings
from millstream.model.duration import microseconds
from millstream.windows.panes.message import Message, Why
from millstream.windows.panes.pane_maker import Making
from millstream.windows.placed import PlacedJob

MEASURED = 0.25
"""Seconds between two checks of the memory in use."""
HELD_BACK = int((SILENCE + 1) * 1_000_000)
"""Microseconds for which the last record may be held back, if records have several lines."""


class JobPanes:
    """Makes the panes of a job. Used by one thread. `sending` returns the part of the status about
    sending."""

    def __init__(
        self,
        placed: PlacedJob,
        node: str,
        tree: str,
        state: State,
        outbox: Outbox,
        windows: Windows,
        limits: Limits,
        around: Surroundings,
        sending: Callable[[], SendingStatus] = SendingStatus,
    ) -> None:
        assert placed.logs is not None
        self.placed, self._node, self._state, self._outbox = placed, node, state, outbox
        self._limits, self._around, self._sending = limits, around, sending
        self.folder = state.folder
        self._grace = microseconds(placed.logs.grace, "logs: grace")
        self._lateness = microseconds(placed.logs.lateness, "logs: lateness")
        self.framing: Framing | None = None
        """Tells which lines form a record; None if each line is one."""
        if placed.logs.starts is not None:
            self.framing = Framing(placed.logs.starts, placed.logs.encoding or "utf-8")
            self._grace += HELD_BACK
        restart = restart_from(outbox.newest())
        self.position = restart.position
        """The position in the log at which it begins to read."""
        self.follower: LogFollower | None = None
        """Follows the files of the log; set by the reading."""
        self._gaps, self._end_told = restart.gaps, restart.over
        self._began = (restart.read, restart.gaps)
        self._letters = DeadLetters(state.folder / "dead-letters.jsonl", restart.letters)
        self._pacing = Pacing(placed.job, node, windows, around.clock, around.wall)
        self._rounds = Rounds(placed.job, node, restart)
        self._sent = SentPanes(placed, node, outbox, self._rounds, limits, restart, around.say)
        self._here = restart
        """The restart point at the beginning of the current pane."""
        self._excess: dict[str, int] = {}
        self._reading = PaneReader(
            placed,
            node,
            tree,
            restart,
            letters=self._letters,
            ended=self._ended,
            choose=self._choose,
            silent=self._rounds.in_rounds,
        )
        self.first_time, self.place_of = self._reading.first_time, self._reading.place_of
        self.pane_size = placed.job.span.pane
        self.stamps: FirstSeenTimes | None = None
        """The journal of when records without a time were first seen."""
        if placed.job.span.axis == "time" and not self._reading.has_times:
            self.stamps = FirstSeenTimes(state.folder / "stamps.jsonl")
        self._telling = Telling(around.say, node, state.folder)
        self._remaker = Remaker(
            placed, node, tree, self._letters, self._pacing, limits, around, self._again
        )
        self._slicer = Slicer(around.clock)
        """Slices lines that are read again."""
        self._at: tuple[LineChunk, Slice] | None = None
        """The slice that is being processed, and its chunk."""
        self._sized = (0, 0)
        """A number of first lines of that slice, and their bytes."""
        self._measured = around.clock()
        self._done = False

    @property
    def kin(self) -> Hashable:
        """Jobs with equal `kin` can share one reading: it gives them the same records, and reads
        the files in the same order."""
        assert self.placed.logs is not None
        like = replace(self.placed.logs, ahead="1d", jump="1h", lateness="0s", grace="250ms")
        job = self.placed.job
        return like, "counted" if job.span.axis in ("records", "bytes") else job.sequence

    @property
    def over(self) -> bool:
        """True if the job's extent is over: it takes no more lines."""
        return self._reading.over

    def status(self) -> JobStatus:
        """Returns the job's status."""
        making, why = self._reading.making, dict(self._sent.shed_why)
        for pane in self._reading.panes.all:
            if pane.given_up is not None and pane.shed:
                why[pane.given_up] = why.get(pane.given_up, 0) + pane.shed
        sent = self._sent.counts.less(self._rounds.ahead(making.pane))
        counts = sent.plus(self._reading.panes.counts)
        return JobStatus(
            job=self.placed.name,
            node=self._node,
            pane=making.pane,
            read=making.read,
            **asdict(counts),
            shed_why=why,
            deferred=self._rounds.deferred,
            residual=making.read - counts.all - self._rounds.deferred,
            outside=making.outside,
            dead_letters=KeptLetters(self._letters.kept, self._letters.cut),
            gaps=self._gaps,
            outbox_bytes=self._outbox.bytes,
            paused=self._limits.paused,
            **structs.asdict(self._sending()),
            waiting_for_files=self.follower is None or self.follower.empty,
            log_at_end=self._done,
            at=self._around.wall(),
        )

    def tell(self) -> None:
        """Write the status into the state folder."""
        self._state.status(self.status())

    def begin(self) -> None:
        """Report the first pane at once, if it is known before any record."""
        span = self.placed.job.span
        known = span.begin is not None or span.axis in ("records", "bytes")
        if self._reading.making.pane is None and known:
            self._reading.begin(span.pane_of(span.begin or 0))
            self.put()

    def take(self, chunk: LineChunk, part: Slice) -> None:
        """Process a slice of lines."""
        for stamp, lines in self._stamped(chunk, part):
            if self._reading.over or self._around.stop.is_set():
                break
            self._at, self._sized = (chunk, lines), (0, 0)
            now = self._around.wall()
            self._reading.take(lines.lines, stamp, lines.place, now, lines.after)
            self._telling.of_letters(self._letters)
            self._telling.of_times(self._reading, self._sent.counts)
            self.put()
            self._pace()
            self._remake(self._reading.making.pane)
        self._at = None

    def leave_out(self, chunk: LineChunk) -> None:
        """Count a line that is too long to be read."""
        self._reading.leave_out(chunk)
        self._telling.of_letters(self._letters)

    def missing(self, gap: LogGap) -> None:
        """Record a gap: part of the log was lost before it was read."""
        self._gaps += 1
        self._reading.missing(gap.known_bytes, self._around.wall())
        self._letters.gap(str(gap))

    def idle(self, seen: int) -> None:
        """End the panes that are over by `seen`: all that the log had then was read."""
        span, reading = self.placed.job.span, self._reading
        if span.axis == "time":
            if reading.making.pane is None:
                reading.begin(span.pane_of(seen - self._lateness))
            grace = self._grace + self._lateness if reading.has_times else 0
            until = span.pane_of(seen - grace)
            if self._rounds.in_rounds:  # a block's panes stay open, so that it can be read again
                until -= until % span.panes
            if reading.panes.oldest is not None and until > reading.panes.oldest:
                reading.end(until)
        self.put()
        self._remake(reading.making.pane)

    def waited(self, seconds: float) -> None:
        """Notes that the log had nothing to read for `seconds`."""
        self._pacing.waited(seconds)

    def end_of_log(self) -> None:
        """End the open panes and report, once, that the log is over: nothing follows."""
        reading, span = self._reading, self.placed.job.span
        read = reading.making.read
        if self._end_told == read and (read, self._gaps) == self._began:
            return  # it was reported before, and nothing has come since
        if reading.making.pane is None and reading.making.dead:  # no line had a time
            reading.begin(span.pane_of(self._around.wall() if span.axis == "time" else 0))
        if reading.making.pane is None:
            self._end_of_empty_log()
            return
        if reading.panes.any:
            reading.panes.cut()
        if span.extent is not None:
            reading.end(FAR)
        elif reading.panes.any:
            reading.end((reading.panes.newest.pane or 0) + 1)
        self._remake(None)
        if not self._around.stop.is_set():
            self._end_told = read
            assert reading.panes.oldest is not None
            self._ended(reading.panes.over(reading.panes.oldest), 0)

    def _end_of_empty_log(self) -> None:
        """Report that the log ended before every pane, unless part of it was lost. The node has no
        current pane yet: lines that come later may have any time."""
        if not self._gaps and not self._around.stop.is_set():
            self._end_told = 0
            first = -self.placed.job.span.furthest
            self._ended(self._reading.panes.over(first), 0)

    def finish(self, *, at_end: bool) -> None:
        """End the processing of lines. `at_end`: all of the log was read."""
        self.put()
        if self._reading.over:
            self._remake(None)
            at_end = True
        self._done = at_end and not self._around.stop.is_set()
        self.tell()

    def close(self) -> None:
        self._letters.close()
        if self.stamps is not None:
            self.stamps.close()

    def put(self) -> None:
        """Put the panes that have ended into the outbox."""
        position, stamps = self._sent.put(), self.stamps
        if position is not None and stamps is not None:
            self._limits.when_there_is_room(lambda: stamps.forget(position))

    def _stamped(self, chunk: LineChunk, part: Slice) -> Iterator[tuple[int, Slice]]:
        """Splits a slice into runs of lines with one stamp each.

        A line without a time of its own is stamped with when it was first seen
        (`first_seen_times`).
        """
        stamps, file = self.stamps, chunk.file
        if stamps is None:
            yield self._around.wall(), part
            return
        end, stamped = chunk.start + chunk.size, [0]
        while part.lines:
            place = part.place[1]

            def stamp(stamps: FirstSeenTimes = stamps, place: int = place) -> None:
                seen = self._first_seen()
                stamped[0] = stamps.stamp(file.key, place, end - place, file.size, seen)

            if not self._limits.when_there_is_room(stamp):
                return  # the agent was stopped
            same, part = part.parted(stamps.until(file.key, place) - place)
            yield stamped[0], same

    def _first_seen(self) -> int:
        """Returns the time for a record that has none: now.

        Such a record is never late: it belongs to no pane that has ended, even if the clock was
        set back.
        """
        pane, now = self._reading.making.pane, self._around.wall()
        return now if pane is None else max(now, pane * self.placed.job.span.pane)

    def _pace(self) -> None:
        """After a slice: give up open panes that are not wanted any more, or have no room."""
        self._around.tick()
        reading = self._reading
        wanted = [making for making in reading.panes.all if making.given_up is None]
        if not wanted or reading.over:
            return
        for making in wanted[:-1]:
            if making.pane is not None and self._pacing.cancelled(making.pane):
                reading.give_up(making, "cancelled")
        newest = wanted[-1]
        if newest is reading.panes.all[-1] and newest.pane is not None:
            why = self._pacing.look(newest.pane, reading.part_done)
            if why is not None:
                reading.give_up(newest, why)
                return
        if self._around.clock() - self._measured >= MEASURED:
            self._measured = self._around.clock()
            self._make_room(wanted)

    def _make_room(self, wanted: list[Making]) -> None:
        """Give up panes that do not fit into memory, those with the most keys first."""
        largest = sorted(wanted, key=lambda making: len(making.partials))
        while largest and not self._limits.fits():
            making = largest.pop()
            self._around.say(
                f"pane {making.pane} does not fit into memory (--memory), and is given up"
            )
            self._reading.give_up(making, "memory")
            if not largest:
                self._limits.made_room()

    def _choose(self, pane: int) -> Why | None:
        """Returns why a pane that begins is not to be made, or not now; None if it is."""
        for late, count in self._excess.items():
            self._reading.making.late[late] = count
        self._excess = {}
        return self._pacing.choose(pane, later=self._rounds.later(pane))

    def _ended(self, message: Message, index: int) -> None:
        """Send a pane that has ended before a line of the slice, or keep it for its round."""
        making, start = self._reading.making, self._here
        manifest = message.nodes[self._node]
        self._here = Restart(
            pane=None if self._reading.panes.oldest is None else message.until,
            position=self._position(index),
            read=making.read,
            read_bytes=making.read_bytes,
            outside=making.outside,
            letters=self._letters.state,
            gaps=self._gaps,
            over=self._end_told,
            gap_to=self._reading.gap_to,
            open=self._reading.panes.carried(message.until),
        )
        if message.until == message.pane + 1 and self._rounds.was_sent(message.pane):
            more = self._rounds.more_than_sent(message)
            if more > 0:
                self._excess[str(message.pane)] = more
        elif manifest.why == "drawn" and self._rounds.later(message.pane):
            self._rounds.defer(Region(message, start, self._here.position))
        else:
            for part in self._rounds.unsent(message):
                self._sent.send(part, self._here)

    def _remake(self, pane: int | None) -> None:
        """Make the deferred panes whose round is due, now that the log has come to `pane`."""
        for region in self._rounds.due(pane):
            message = None if self._around.stop.is_set() else self._remaker.made_of(region)
            if message is None:
                break
            self._sent.send(message, self._here)
            self.put()

    def _again(self, region: Region) -> Iterator[tuple[LineChunk, int, Slice | None]]:
        """Reads the lines of a region again. A slice of None stands for a line that is too long."""
        assert self.follower is not None
        for chunk in self.follower.again(region.start.position, region.end):
            if chunk.too_long:
                yield chunk, 0, None
                continue
            for part in self._slicer.slices(chunk):
                for stamp, lines in self._stamped(chunk, part):
                    yield chunk, stamp, lines

    def _position(self, index: int) -> list[Mark]:
        """Returns the position in the log before a line of the current slice."""
        assert self.follower is not None
        if self._at is None:
            return self.follower.position()
        chunk, part = self._at
        known, size = self._sized
        self._sized = (index, size + size_of(part.lines[known:index]))
        return self.follower.position(chunk, part.offset + self._sized[1])
