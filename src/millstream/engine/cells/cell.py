"""One function in one shard during one batch: reads its rows, feeds it, collects its changes.

A cell works on a view of the shard as it stood before the batch, and collects its changes; nothing
is written until the task commits. It can be stepped several times in a batch, each time with a
higher horizon, and sees its own changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter_ns
from typing import Any

import msgspec

from millstream.engine.beat import Beat
from millstream.engine.cells.admission import PATIENCE, Admission
from millstream.engine.cells.content_order import KeyPiece, by_key
from millstream.engine.cells.feeder import Feeder, Redo
from millstream.engine.cells.gate import Gate
from millstream.engine.cells.key_run import Due
from millstream.engine.cells.queue import Queue
from millstream.engine.cells.room import Room, abandoned
from millstream.engine.cells.slate_rows import Rows, SlateRows
from millstream.engine.cells.sweep import age_of
from millstream.engine.cells.timed_feed import TimedFeed
from millstream.engine.cells.timer_index import TimerIndex, due_in
from millstream.engine.columns import Columns
from millstream.engine.effects import Effects
from millstream.engine.final_phase import BEYOND
from millstream.engine.plan import Plan
from millstream.engine.progress import greatest, least
from millstream.engine.router import FeedbackOutbox, Router
from millstream.model.event import Clock
from millstream.model.function import Update
from millstream.model.slate import Table
from millstream.slate_changes import SlateChanges
from millstream.stores.contract import View, after_prefix
from millstream.stores.function_counts import FunctionCounts, Large
from millstream.stores.layout import (
    outbox_of,
    outbox_row,
    unpack_slate,
)
from millstream.stores.progress import PendingWork

BEGINNING = -(1 << 63)
"""A time before every event: the horizon while nothing is known of the sources."""


class Cell:
    """A placed function in a shard. Call `step`, then read `changes` and the other results."""

    def __init__(self, plan: Plan, number: int, view: View, beat: Beat) -> None:
        function = plan.functions[number]
        self.number = number
        self.name = function.name
        self.stored = plan.stored[number]
        """The name under which its rows are stored."""
        self.counts = FunctionCounts()
        """What it did in this batch, without what the router counts."""
        self.latest: int | None = None
        """The greatest ts of its events in this batch, if the function has timers."""
        self.fired: int | None = None
        """The latest timer that fired, in a final phase."""
        self.outbox = FeedbackOutbox()
        self._plan = plan
        self._view = view
        self._beat = beat
        self._rows = SlateRows(view, self.stored)
        self._timers = TimerIndex(view, self.stored)
        self._stale_outbox: list[bytes] = []
        self._gate = Gate(view, self.stored, beat.passed, beat.batch) if plan.waits else None
        self._update = function if isinstance(function, Update) else None
        self._admission: Admission | None = None
        if self._update is not None:
            share = beat.shares.get(self.name)
            queue = Queue(view, self.stored)
            self._admission = Admission(
                self._update, queue, plan.streams, waits=plan.waits, share=share
            )
        self.room: Room | None = None
        if self._update is not None and number in plan.rooms:
            self.room = Room(
                self._update, self.stored, plan.rooms[number], view, self._rows.entries
            )
        self._has_timers = self._update is not None and self._update.on_timer is not None
        if number in plan.emitters:
            prefix = outbox_of(self.stored)
            self._stale_outbox = [row for row, _ in view.scan(prefix, after_prefix(prefix))]

    def step(self, arrived: Columns | None, beat: Beat, router: Router) -> None:
        """Feeds the events and timers that are due, and routes what they emit."""
        due, admission = arrived, self._admission
        if admission is not None and admission.held:
            due = admission.left_over()
            due.extend(arrived or Columns())
        if self._gate is not None:
            due = self._gate.take(due, self._open_until(beat))
        if admission is not None:
            due = admission.admit(due)
            self._turn_away(admission, router)
        timed = self._timers.due(due_in(beat, self.name)) if self._has_timers else {}
        if not due and not timed:
            return
        due = due if due is not None else Columns()
        if self._update is None:
            router.run_map(self.number, due, outbox=self.outbox)  # the router counts these events
        else:
            self._feed(self._update, due, timed, beat, router)

    def _open_until(self, beat: Beat) -> int:
        """Returns the time up to which the gate is open."""
        if beat.final is not None and beat.final.takes(self.name):
            return BEYOND
        return BEGINNING if beat.horizon is None else beat.horizon

    def _turn_away(self, admission: Admission, router: Router) -> None:
        """Drops or diverts the events past the limit."""
        if dropped := admission.take_dropped():
            router.dropped.setdefault(self.number, Columns()).extend(dropped)
        if diverted := admission.take_diverted():
            self.counts.diverted += len(diverted)
            stream = admission.overflow
            later = max(1, self._plan.delays.get(stream, 0))
            moved = diverted.with_stream(self._plan.stream_number[stream], later)
            router.route(self.number, moved, self.outbox)

    def _feed(
        self, update: Update, due: Columns, timed: dict[bytes, str], beat: Beat, router: Router
    ) -> None:
        began = perf_counter_ns()
        feeder = self._feeder(update, beat)
        if self._has_timers and due:
            self.latest = greatest(self.latest, due.greatest)
        groups = by_key(due, self._plan.streams)
        if timed:
            groups = groups.with_keys({*timed.values()})
        rows = self._rows.read(groups.keys)
        for piece in groups.pieces():
            self._feed_piece(feeder, piece, rows, beat)
        self._timers.spend(timed)
        self._end_feed(feeder, len(due), router)
        router.took(self.number, perf_counter_ns() - began)
        router.route(self.number, feeder.effects.emitted, self.outbox)

    def _feed_piece(
        self, feeder: Feeder, piece: KeyPiece, rows: list[bytes | None], beat: Beat
    ) -> None:
        """Feeds some keys. Python objects of events are made here, and dropped again."""
        events, slates, quick = piece.events, self._rows.slates, feeder.plain
        feed_quickly = feeder.feed_batch if feeder.update.batch else feeder.feed_plain
        counts, timers, start = self.counts, due_in(beat, self.name), 0
        timed = None
        if feeder.timed and timers.limit is None:
            timed = TimedFeed(feeder, timers)
        values = piece.decoded()
        again = quick or timed is not None
        given = piece.made(values, self._plan.streams) if again else []
        for number, (key, count) in enumerate(zip(piece.keys, piece.counts, strict=True)):
            row, first, start = rows[piece.first + number], start, start + count
            if timed is not None:
                try:
                    new = timed.feed(key, row, given[first:start], events, first)
                    self._keep(key, row, new, timed.last, timed.reach)
                    self._timers.follow(key, timed.before, timed.timers)
                    continue
                except Redo:
                    pass
            elif quick:
                try:
                    slates[key] = feed_quickly(key, row, given[first:start], events, first)
                    if row is None:
                        counts.slates += 1
                    continue
                except Redo:
                    pass
            order = range(first, start)
            self._feed_key(feeder, key, row, events, values, order, timers, again=again)

    def _feeder(self, update: Update, beat: Beat) -> Feeder:
        return Feeder(
            update,
            Effects(self._plan, self.number, beat.clock),
            self._plan.streams,
            beat.batch,
            self._plan.workflow.on_error,
            self._rows.entries,
            self._plan.workflow.slate_warn,
            self._plan.workflow.slate_limit,
        )

    def _feed_key(
        self,
        feeder: Feeder,
        key: str,
        row: bytes | None,
        due: Columns,
        values: list[Any],
        order: Sequence[int],
        timers: Due,
        *,
        again: bool,
    ) -> None:
        """Feeds a key that the quick path is not for, or that it has failed for (`again`)."""
        before = unpack_slate(row).timers if row is not None and self._has_timers else {}
        fed = feeder.feed(key, row, due, values, order, timers, again=again)
        self.fired = greatest(self.fired, fed.fired)
        self._keep(key, row, fed.row, fed.last, fed.reach)
        self._timers.follow(key, before, fed.timers)
        if fed.wiped:
            self._rows.wipe(key)
        if fed.entries:
            self._rows.tables.setdefault(key, {}).update(fed.entries)

    def _keep(
        self, key: str, before: bytes | None, row: bytes | None, last: int, reach: int
    ) -> None:
        """Takes over the row of a key; `last` and `reach` as in `Fed`."""
        if row is not None:
            self._rows.slates[key] = row
        elif before is not None:
            self._rows.delete(key, last)
        self.counts.slates += (row is not None) - (before is not None)
        self.counts.reach = max(self.counts.reach, reach)

    def _end_feed(self, feeder: Feeder, events: int, router: Router) -> None:
        """Takes over what a feeder counted and what failed."""
        if feeder.large is not None:
            self._note_large(*feeder.large)
        self.counts.processed += events - sum(letter.timer is None for letter in feeder.dead)
        router.dead.extend(feeder.dead)

    def _note_large(self, key: str, size: int) -> None:
        """Notes a slate over the workflow's `slate_warn`: the largest of the batch is reported."""
        large = self.counts.large
        if large is None or size > large.bytes:
            self.counts.large = Large(key, size, self._beat.batch)

    def take_outbox(self) -> FeedbackOutbox:
        """Takes out the feedback events, for a further step of this batch."""
        outbox, self.outbox = self.outbox, FeedbackOutbox()
        return outbox

    def sweep(self, shard: int, until: int | None) -> None:
        """Deletes slates that are expired for every event after `until` (see `sweep`)."""
        update = self._update
        if update is None or update.ttl is None or until is None:
            return
        before = until - age_of(self._plan.workflow, update.ttl)
        for key, row in self._plan.sweeps.expired(
            self._view, self.stored, shard, before, self._rows.slates
        ):
            self._drop(update, key, row)
            self.counts.swept += 1

    def make_room(self, router: Router) -> None:
        """Deletes the least important slates if there are too many (see `engine.cells.room`)."""
        room, update = self.room, self._update
        if room is None or update is None:
            return
        began = perf_counter_ns()
        room.follow(self._rows.slates, self._rows.tables)
        going = room.take_out()
        for key, row in zip(going, self._rows.read(going), strict=True):
            assert row is not None
            self._drop(update, key, row)
            self.counts.evicted += 1
        if room.priorities.failures:
            self.counts.unranked = room.priorities.failed(self._beat.batch)
        router.took(self.number, perf_counter_ns() - began)

    def _drop(self, update: Update, key: str, row: bytes) -> None:
        """Deletes a slate, with its timers and its entries."""
        stored = unpack_slate(row)
        self._rows.delete(key, stored.last)
        self._timers.follow(key, stored.timers, {})
        if update.slate is Table:
            self._rows.wipe(key)
        self.counts.slates -= 1

    def slate_changes(self) -> SlateChanges:
        """Returns the final state of each slate, or table entry, that this batch has changed."""
        batch = self._beat.batch
        if self._update is not None and self._update.slate is Table:
            return self._rows.entry_changes(batch)
        return self._rows.slate_changes(batch)

    def changes(self) -> Rows:
        """Returns the rows to commit."""
        rows = self._rows.changes()
        rows.update(self._timers.changes)
        if self.room is not None:
            rows.update(self.room.changes())
        elif self._update is not None:
            rows.update(abandoned(self._view, self.stored))
        if self._gate is not None:
            rows.update(self._gate.changes())
        if self._admission is not None:
            rows.update(self._admission.changes(self._beat.batch))
        for row in self._stale_outbox:
            rows[row] = None
        if self.outbox:
            start = outbox_of(self.stored)
            for number, (target, events) in enumerate(self.outbox.deliveries.items()):
                packed = msgspec.msgpack.encode((self._plan.stored[target], events.pack()))
                rows[outbox_row(start, self._beat.batch, number)] = packed
        return rows

    def pending(self) -> PendingWork:
        """Returns what is left to do here after this batch."""
        outbox = self.outbox
        return PendingWork(
            least_waiting=self.least_waiting(),
            least_timer=self.least_timer("event"),
            least_wall=self.least_timer("wall"),
            feedback=len(outbox),
            least_feedback=least(*(events.least for events in outbox.deliveries.values())),
            held=self._admission.held if self._admission is not None else 0,
            pressure=self._pressure(),
            hold=self._hold(),
        )

    def least_timer(self, clock: Clock) -> int | None:
        """Returns the time of the earliest timer that is set after this batch."""
        return self._timers.least(clock) if self._has_timers else None

    @property
    def oldest(self) -> int | None:
        """The earliest batch in which an event came that was fed in this one (event-time order)."""
        return self._gate.oldest if self._gate is not None else None

    def least_waiting(self) -> int | None:
        return self._gate.least() if self._gate is not None else None

    def waiting_change(self) -> int:
        """Returns how many more events wait here than before the batch."""
        gate = self._gate.fresh - self._gate.stored_taken if self._gate is not None else 0
        return gate + (self._admission.waiting_change if self._admission is not None else 0)

    def _pressure(self) -> float:
        """Returns the filled part of the room for events over the limit or share: 1 is full."""
        update = self._update
        if self._gate is None or update is None or update.limit is None:
            return self._admission.pressure if self._admission is not None else 0.0
        if update.overload != "throttle":
            return 0.0
        room = PATIENCE * update.limit
        return self._gate.overdue(self._beat.late, room) / room

    def _hold(self) -> int | None:
        """Returns the horizon up to which as many events as the limit become due; None: any."""
        update = self._update
        if self._gate is None or update is None or update.limit is None:
            return None
        return self._gate.hold(update.limit) if update.overload == "throttle" else None


def stored_outbox(view: View, name: str) -> Iterator[tuple[str, Columns]]:
    """Yields the feedback events that a function's last batch left: (target's name, events)."""
    prefix = outbox_of(name)
    for _, packed in view.scan(prefix, after_prefix(prefix)):
        target, events = msgspec.msgpack.decode(packed, type=tuple[str, bytes])
        yield target, Columns.unpack(events)
