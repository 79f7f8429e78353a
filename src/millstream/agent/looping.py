"""The loop of an agent: lines of its log become panes, and those go into the outbox.

What was read is taken in slices, short enough that between two of them the loop can look up: is it
to stop, was a window closed, is time or memory short. A pane that ends is in the outbox, with the
place in the log after it, before the next slice is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

from millstream.agent.bodies import fitted
from millstream.agent.dead_letters import DeadLetters
from millstream.agent.files import Chunk
from millstream.agent.following import Follower, Gap
from millstream.agent.limits import Limits
from millstream.agent.options import Options
from millstream.agent.outbox import Entry, Outbox, Say
from millstream.agent.pacing import Pacing, Windows
from millstream.agent.reading import FAR, Reading
from millstream.agent.remaking import Remaker
from millstream.agent.restart import Restart, restart_from
from millstream.agent.rounds import Region, Rounds
from millstream.agent.slicing import Slice, Slicer, size_of
from millstream.agent.stamping import Stamps
from millstream.agent.state import State
from millstream.agent.telling import Telling
from millstream.errors import CommandError
from millstream.model.duration import microseconds
from millstream.windows.message import Message, Why
from millstream.windows.placed import PlacedJob

LOOK = 0.25
"""Seconds between two looks at the files, when there is nothing to read."""


class Loop:
    """Reads a log and makes its panes. `check` raises what must end it; `sending` says how what
    it made goes out, as part of the status."""

    def __init__(
        self,
        placed: PlacedJob,
        options: Options,
        state: State,
        outbox: Outbox,
        windows: Windows,
        *,
        say: Say,
        stop: Event,
        check: Callable[[], None],
        sending: Callable[[], dict[str, Any]] = dict,
        clock: Callable[[], float],
        wall: Callable[[], int],
    ) -> None:
        self._placed, self._options, self._outbox = placed, options, outbox
        self._say, self._stop, self._check, self._clock, self._wall = say, stop, check, clock, wall
        self._state, self._sending = state, sending
        assert placed.logs is not None
        self._grace = microseconds(placed.logs.grace, "logs: grace")
        restart = restart_from(outbox.newest())
        self._counts, self._gaps, self._over = restart.counts, restart.gaps, restart.over
        self._letters = DeadLetters(state.folder / "dead-letters.jsonl", restart.letters)
        self._limits = Limits(outbox, options.memory, say=say, stop=stop, tick=self.tick)
        self._pacing = Pacing(placed.job, options.node, windows, clock, wall)
        self._entries: list[Entry] = []
        self._rounds = Rounds(placed.job, options.node, restart)
        self._counts = self._counts.plus(self._rounds.ahead(restart.pane))
        self._began = (restart.read, restart.gaps)
        self._here = restart
        """Where the pane that is made begins."""
        self._excess: dict[str, int] = {}
        self._shed_why = dict(restart.shed_why)
        self._reading = Reading(
            placed,
            options.node,
            options.whole_tree,
            restart,
            letters=self._letters,
            ended=self._ended,
            choose=self._choose,
            silent=self._rounds.in_rounds,
        )
        by_time = placed.job.span.axis == "time"
        self._stamps: Stamps | None = None
        if by_time and not self._reading.has_times:
            self._stamps = Stamps(state.folder / "stamps.jsonl")
        self._follower = Follower(
            options.patterns,
            clock=clock,
            gap=self._gap,
            first_time=self._reading.first_time,
            pane_of=self._reading.pane_of,
            position=restart.position,
            once=options.once,
            stamps=self._stamps,
        )
        self._telling = Telling(say, options.node, state.folder)
        self._done = False
        """Whether all is read, and nothing more will be."""
        self._slicer = Slicer(self._limits, self._stamps, clock, self._first_seen)
        self._remaker = Remaker(
            placed,
            options.node,
            options.whole_tree,
            self._follower,
            self._slicer,
            self._letters,
            self._pacing,
            self._limits,
            say,
            stop,
            self.tick,
            wall,
        )
        self._at: tuple[Chunk, Slice] | None = None
        """What is being taken in."""
        self._sized = (0, 0)
        """Of how many lines of it the bytes were added up."""
        self._looked = self._told = self._measured = clock() - LOOK
        self._seen = wall()
        """What time it was, at the latest, when the files were looked at: what was written by then
        is known, however long the loop was held up since."""

    def run(self) -> None:
        """Until it is stopped, the job's extent is over or, with `once`, the log is read."""
        self._begin()
        while not self._stop.is_set() and not self._reading.over:
            self.tick()
            # Files that come meanwhile are held open, and can be read though they are deleted.
            self._limits.room_in_outbox(self._look)
            chunk = self._next()
            if chunk is not None:
                self._take(chunk)
            elif self._options.once:
                self._end_of_log()
                self._done = not self._stop.is_set()
                break
            else:
                self._idle()
        self._put()
        if self._reading.over:
            self._remake(None)
            self._done = not self._stop.is_set()
        self.tick(now=True)

    def close(self) -> None:
        self._follower.close()
        self._letters.close()
        if self._stamps is not None:
            self._stamps.close()

    def status(self) -> dict[str, Any]:
        """How it is, as JSON."""
        making, why = self._reading.making, dict(self._shed_why)
        if making.given_up is not None and making.shed:
            why[making.given_up] = why.get(making.given_up, 0) + making.shed
        counts = self._counts.less(self._rounds.ahead(making.pane))
        here = {
            "on_time": counts.on_time + making.records,
            "late": counts.late + sum(making.late.values()),
            "shed": counts.shed + making.shed,
            "dead": counts.dead + making.dead,
        }
        return {
            "job": self._placed.name,
            "node": self._options.node,
            "pane": making.pane,
            "read": making.read,
            **here,
            "shed_why": why,
            "deferred": self._rounds.deferred,
            "residual": making.read - sum(here.values()) - self._rounds.deferred,
            "outside": making.outside,
            "dead_letters": {"kept": self._letters.kept, "cut": self._letters.cut},
            "gaps": self._gaps,
            "outbox_bytes": self._outbox.bytes,
            "paused": self._limits.paused,
            **self._sending(),
            "waiting_for_files": self._follower.empty,
            "log_at_end": self._done,
            "at": self._wall(),
        }

    def _begin(self) -> None:
        """Where the first pane is known before any record, say so."""
        self._limits.made_room()  # an application may take more than the limit by itself
        span = self._placed.job.span
        known = span.begin is not None or span.axis in ("records", "bytes")
        if self._reading.making.pane is None and known:
            self._reading.begin(span.pane_of(span.begin or 0))
            self._put()
        if self._follower.empty and self._options.once:
            patterns = " ".join(self._options.patterns)
            raise CommandError(
                f"--log {patterns}: no file matches, and with --once none is awaited"
            )
        if self._follower.empty:
            self._say(f"no file matches {' '.join(self._options.patterns)} yet; waiting for one")
        self._telling.of_files(self._follower)

    def _next(self) -> Chunk | None:
        self._look()
        return self._follower.read()

    def _look(self) -> None:
        """See what became of the files, if that is due; never in the middle of a chunk."""
        now = self._clock()
        if now - self._looked >= LOOK and not self._options.once:
            self._looked, self._seen = now, self._wall()
            self._follower.look()
            self._telling.of_files(self._follower)

    def _first_seen(self) -> int:
        """The time of a record that brings none: now. No such record is late, so it is of no pane
        that has ended, though the clock was set back."""
        pane = self._reading.making.pane
        if self._stamps is None or pane is None:
            return self._wall()
        return max(self._wall(), pane * self._placed.job.span.pane)

    def _take(self, chunk: Chunk) -> None:
        """Take what was read, slice by slice."""
        if chunk.too_long:
            self._reading.leave_out(chunk)
            self._telling.of_letters(self._letters)
            return
        for part in self._slicer.slices(chunk):
            self._at, self._sized = (chunk, part), (0, 0)
            self._reading.take(part.lines, part.stamp, part.place, self._wall(), part.after)
            self._telling.of_letters(self._letters)
            self._telling.of_late(self._reading, self._counts.late)
            self._put()
            self._pace()
            self._remake(self._reading.making.pane)
            if self._stop.is_set() or self._reading.over:
                break
        self._at = None

    def _pace(self) -> None:
        """After a slice: is the pane that is made still wanted, and is there room for it."""
        self.tick()
        making = self._reading.making
        if making.pane is None or making.given_up is not None or self._reading.over:
            return
        why = self._pacing.look(making.pane, self._reading.part_done)
        if why is None and self._clock() - self._measured >= LOOK:
            self._measured = self._clock()
            if not self._limits.fits():
                self._say(
                    f"pane {making.pane} does not fit into memory (--memory), and is given up"
                )
                self._reading.give_up("memory")
                self._limits.made_room()
        if why is not None:
            self._reading.give_up(why)

    def _idle(self) -> None:
        """All is read for now: panes whose time is over are ended, and it waits."""
        span, reading = self._placed.job.span, self._reading
        if span.axis == "time":
            if reading.making.pane is None:
                reading.begin(span.pane_of(self._seen))
            grace = self._grace if reading.has_times else 0
            until = span.pane_of(self._seen - grace)
            if self._rounds.in_rounds:  # panes of a block stay open, so that it can be read again
                until -= until % span.panes
            if reading.making.pane is not None and until > reading.making.pane:
                reading.end(until)
        self._put()
        self._remake(reading.making.pane)
        began = self._clock()
        self._stop.wait(LOOK)
        self._pacing.waited(self._clock() - began)

    def _end_of_log(self) -> None:
        """Nothing follows: the last pane ends, and the windows that have it get no more of ours."""
        span, pane = self._placed.job.span, self._reading.making.pane
        read = self._reading.making.read
        if self._over == read and (read, self._gaps) == self._began:
            return  # that was said before, and nothing came since
        self._over = read
        if pane is None and self._reading.making.dead:  # no line has said when it was
            pane = span.pane_of(self._wall() if span.axis == "time" else 0)
            self._reading.begin(pane)
        if pane is not None and span.extent is not None:
            self._reading.end(FAR)
        elif pane is not None:
            self._reading.end(span.panes_of(span.windows_of(pane)[-1])[-1] + 1)
        self._remake(None)

    def _choose(self, pane: int) -> Why | None:
        """Why a pane that begins is not to be made, or not now."""
        for late, count in self._excess.items():
            self._reading.making.late[late] = count
        self._excess = {}
        return self._pacing.choose(pane, later=self._rounds.later(pane))

    def _ended(self, message: Message, index: int) -> None:
        """A pane has ended before a line of the slice: it is sent, or kept for its round."""
        making, start = self._reading.making, self._here
        told = message["nodes"][self._options.node]
        self._here = Restart(
            pane=message["until"],
            position=self._position(index),
            read=told["total"],
            read_bytes=making.read_bytes,
            outside=making.outside,
            letters=self._letters.state,
            gaps=self._gaps,
            over=self._over,
            gap_to=self._reading.gap_to,
        )
        if message["until"] == message["pane"] and making.dead:  # no pane has them yet
            self._here = replace(start, pane=message["pane"])
        if message["until"] == message["pane"] + 1 and self._rounds.was_sent(message["pane"]):
            more = self._rounds.more_than_sent(message)
            if more > 0:
                self._excess[str(message["pane"])] = more
        elif told["why"] == "drawn" and self._rounds.later(message["pane"]):
            self._rounds.defer(Region(message, start, self._here.position))
        else:
            for part in self._rounds.unsent(message):
                self._send(part)

    def _send(self, message: Message) -> None:
        """Give a message to the outbox, with the next `_put`."""
        message, body = fitted(message, self._say)
        name, node = self._placed.name, self._options.node
        told = message["nodes"][node]
        self._counts.add(told)
        if told["why"] is not None and told["shed"]:
            self._shed_why[told["why"]] = self._shed_why.get(told["why"], 0) + told["shed"]
        after = self._rounds.send(message, self._here, self._counts).described()
        after["shed_why"] = dict(self._shed_why)
        self._entries.append(Entry(name, node, message["pane"], message["until"], body, after))

    def _remake(self, pane: int | None) -> None:
        """Go back to panes that were kept for later, now that the log has come to a pane."""
        for region in self._rounds.due(pane):
            message = None if self._stop.is_set() else self._remaker.made_of(region)
            if message is None:
                break
            self._send(message)
            self._put()

    def _position(self, index: int) -> list[dict[str, Any]]:
        """The restart point's place in the log: before a line of the slice."""
        if self._at is None:
            return self._follower.position()
        chunk, part = self._at
        known, size = self._sized
        self._sized = (index, size + size_of(part.lines[known:index]))
        return self._follower.position(chunk, part.offset + self._sized[1])

    def _put(self) -> None:
        if self._entries and self._limits.put(self._entries):
            if self._stamps is not None:
                stamps, position = self._stamps, self._entries[-1].after["position"]
                self._limits.when_there_is_room(lambda: stamps.forget(position))
            self._entries = []

    def tick(self, *, now: bool = False) -> None:
        """Look up: is all well beside the loop; and say how it is, about every second."""
        self._check()
        if now or self._clock() - self._told >= 1.0:
            self._told = self._clock()
            self._state.status(self.status())

    def _gap(self, gap: Gap) -> None:
        self._gaps += 1
        self._reading.missing(gap.known_bytes, self._wall())
        self._letters.gap(str(gap))
        self._say(f"gap in the log: {gap}")
