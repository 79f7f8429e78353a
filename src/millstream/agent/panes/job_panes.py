"""Makes one job's panes at an agent, from the lines that `node_log` reads.

Several jobs may take the lines of one reader. Each has its own panes, counts, outbox and restart
point, and is independent of the others. When a pane ends, it is put into the outbox, with the
position in the log after it, before the next slice is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from msgspec import structs

from millstream.agent.delivery.outbox import Outbox
from millstream.agent.job_status import JobStatus, KeptLetters, SendingStatus
from millstream.agent.limits import Limits
from millstream.agent.log.first_seen_times import FirstSeenTimes
from millstream.agent.log.line_slices import Slice, Slicer
from millstream.agent.log.log_files import LineChunk, LogGap
from millstream.agent.log.log_follower import SILENCE
from millstream.agent.log.multiline_records import Framing
from millstream.agent.log_notices import LogNotices
from millstream.agent.panes.dead_letters import DeadLetters
from millstream.agent.panes.log_cursor import LogCursor
from millstream.agent.panes.pane_pace import Pacing, Windows
from millstream.agent.panes.pane_reader import FAR, PaneReader
from millstream.agent.panes.pane_remaker import Remaker
from millstream.agent.panes.pane_room import PaneRoom
from millstream.agent.panes.record_stamps import RecordStamps
from millstream.agent.panes.restart import Restart, restart_from
from millstream.agent.panes.rounds import Region, Rounds
from millstream.agent.panes.sent_panes import SentPanes
from millstream.agent.state import State
from millstream.agent.surroundings import Surroundings
from millstream.model.duration import microseconds
from millstream.windows.panes.message import Message, Why
from millstream.windows.placed import PlacedJob

HELD_BACK = int((SILENCE + 1) * 1_000_000)
"""Microseconds for which the last record may be held back, if records have several lines."""


@dataclass
class LogEnd:
    """The end of the log, as far as it was reached and reported."""

    reported: int | None
    """The number of records that were read when the end was last reported."""
    began: tuple[int, int]
    """The records that were read, and the gaps, when the agent was started."""
    reached: bool = False
    """True if all of the log was read."""

    def is_reported(self, read: int, gaps: int) -> bool:
        """True if the end was reported before, and nothing has come since."""
        return self.reported == read and (read, gaps) == self.began


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
        self._gaps = restart.gaps
        self._end = LogEnd(restart.over, (restart.read, restart.gaps))
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
        journal = None
        if placed.job.span.axis == "time" and not self._reading.has_times:
            journal = FirstSeenTimes(state.folder / "stamps.jsonl")
        self._stamps = RecordStamps(journal, limits, around.wall, self._begin_of_pane)
        self.cursor = LogCursor(Slicer(around.clock), self._stamps)
        self._room = PaneRoom(self._reading, self._pacing, limits, around)
        unit = placed.logs.unit if placed.job.span.axis == "time" else None
        self._notices = LogNotices(around.say, node, unit, state.folder)
        self._remaker = Remaker(
            placed, node, tree, self._letters, self._pacing, limits, around, self.cursor.again
        )

    @property
    def kin(self) -> Hashable:
        """Jobs with equal `kin` can share one reader: it gives them the same records, and reads the
        files in the same order."""
        assert self.placed.logs is not None
        like = replace(self.placed.logs, ahead="1d", jump=None, lateness="0s", grace="250ms")
        job = self.placed.job
        return like, "counted" if job.span.axis in ("records", "bytes") else job.sequence

    @property
    def folder(self) -> Path:
        """The folder of the job's state."""
        return self._state.folder

    @property
    def pane_size(self) -> int:
        return self.placed.job.span.pane

    @property
    def stamps(self) -> FirstSeenTimes | None:
        """The journal of when records without a time were first seen."""
        return self._stamps.journal

    def first_time(self, line: bytes) -> int | None:
        return self._reading.first_time(line)

    def place_of(self, line: bytes) -> int | None:
        """Returns the place of a line on the axis, by its own content; None if it has none."""
        return self._reading.place_of(line)

    @property
    def over(self) -> bool:
        """True if the job's extent is over: it takes no more lines."""
        return self._reading.over

    def status(self) -> JobStatus:
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
            waiting_for_files=self.cursor.follower is None or self.cursor.follower.empty,
            log_at_end=self._end.reached,
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
        for stamp, lines in self._stamps.runs(chunk, part):
            if self._reading.over or self._around.stop.is_set():
                break
            self.cursor.enter(chunk, lines)
            now = self._around.wall()
            self._reading.take(lines.lines, stamp, lines.place, now, lines.after)
            self._notices.of_letters(self._letters)
            self._notices.of_times(self._reading, self._sent.counts)
            self._notices.of_unit(self._begin_of_pane(), now)
            self.put()
            self._around.tick()
            self._room.look()
            self._remake(self._reading.making.pane)
        self.cursor.leave()

    def leave_out(self, chunk: LineChunk) -> None:
        """Count a line that is too long to be read."""
        self._reading.leave_out(chunk)
        self._notices.of_letters(self._letters)

    def missing(self, gap: LogGap) -> None:
        """Record a gap: part of the log was lost before it was read."""
        self._gaps += 1
        self._reading.missing(gap.known_bytes, self._around.wall())
        self._letters.gap(str(gap))

    def idle(self, seen: int) -> None:
        """End the panes that are over by `seen`: all lines that the log had then were read."""
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
        if self._end.is_reported(read, self._gaps):
            return
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
            self._end.reported = read
            assert reading.panes.oldest is not None
            self._ended(reading.panes.over(reading.panes.oldest), 0)

    def _end_of_empty_log(self) -> None:
        """Report that the log ended before every pane, unless part of it was lost. The node has no
        current pane yet: lines that come later may have any time."""
        if not self._gaps and not self._around.stop.is_set():
            self._end.reported = 0
            first = -self.placed.job.span.furthest
            self._ended(self._reading.panes.over(first), 0)

    def finish(self, *, at_end: bool) -> None:
        """End the processing of lines. `at_end`: all of the log was read."""
        self.put()
        if self._reading.over:
            self._remake(None)
            at_end = True
        self._end.reached = at_end and not self._around.stop.is_set()
        self.tell()

    def close(self) -> None:
        self._letters.close()
        self._stamps.close()

    def put(self) -> None:
        """Put the panes that have ended into the outbox."""
        position = self._sent.put()
        if position is not None:
            self._stamps.forget(position)

    def _begin_of_pane(self) -> int | None:
        """Returns where the current pane begins on the axis; None if there is none."""
        pane = self._reading.making.pane
        return None if pane is None else pane * self.placed.job.span.pane

    def _choose(self, pane: int) -> Why | None:
        """Returns the reason not to make a pane that begins, or not now; None if it must be
        made."""
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
            position=self.cursor.position(index),
            read=making.read,
            read_bytes=making.read_bytes,
            outside=making.outside,
            letters=self._letters.state,
            gaps=self._gaps,
            over=self._end.reported,
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
