"""The reference interpreter: what a workflow means.

One thread, one heap, no batches. Spark must give the same slates and the same streams (in
event-time order, over the input without late events). The rules (Muppet, section 3;
docs/concepts.md):

- Everything happens in order of time. Each function is fed the events of its streams in content
  order `(ts, stream, value bytes)`; what it emits is later than its input.
- A timer at T fires after all events with ts up to T. Timers past the last event do not fire:
  time goes only as far as the greatest ts of any event.
- Where event time was ended (`--final`, see reference_final.py), the timers that are left wait
  until an event comes that is later than the end. A timer for the end fires only then.
- An event is emitted as it stands when it is yielded; what the function changes later is not in it.
  A value that is left out is the input's as it came, even if the function has changed its copy.
- An event that fails leaves the slate, the streams and the timers as if it had not come. One that
  would take the slate, or an entry of a table, over `slate_limit` fails.
- A slate expires for an event, or for a timer, that comes more than `ttl` after the last event
  that updated it; its timers die with it. A timer's firing does not keep a slate alive.
- A slate that was stored with another version than the update's is read through its migrations
  (model/migration.py). A slate that cannot be read is left unchanged, and its events fail.
- A late event is not fed. A stream that is declared for notices of late events gets one for it,
  just later than the horizon that the event has missed (model/late_notice.py).
- A retried dead letter is delivered only to the function that failed. It keeps its stream and its
  time, and is ordered among the pending events.
- The slate of an aggregate is the merge of the partials of its events (model/algebra.py).
- An update over many events at once (`batch=True`) is called with one event after the other.
- There is room for everything: `limit`, `keep` and `memory` are ignored. Every update is
  `immediate`: no event waits for another batch.
- Wall timers fire when the clock is moved past them. What they emit is later than both the timer
  and the event time reached so far; whether their slate has expired is a matter of event time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from millstream.codec import decode_value, encode_value, readable_slate, slate_codec
from millstream.errors import CodecError, FunctionError, LookupFailed
from millstream.model.algebra import Algebra
from millstream.model.event import END, Clock, Emit, Event, Forget, SetTimer, Timer
from millstream.model.function import Map, Update
from millstream.model.late_notice import late_notice, late_notices
from millstream.model.path import is_unicode
from millstream.model.place import FAILURES, described
from millstream.model.rules import (
    DeadLetter,
    effects,
    emitted,
    no_timer_function,
    not_an_effect,
    timer_time,
)
from millstream.model.slate import Table, over_limit
from millstream.model.workflow import Workflow
from millstream.slate_versions import migrated_entries, read_slate
from millstream.update_calls import per_event

EVENT, TIMER = 0, 1
Entry = tuple[int, int, str, str, str, bytes]
"""An event or a timer to come: (ts, kind, function, key, stream or timer's name, value)."""
Owner = tuple[str, str]
"""(update, key): who owns a slate."""


@dataclass
class ReferenceSlate:
    """A stored slate: its bytes (or a table's entries), when it was updated, its timers."""

    last: int
    data: bytes = b""
    entries: dict[str, bytes] = field(default_factory=dict)
    timers: dict[str, tuple[Clock, int]] = field(default_factory=dict)
    version: int = 1


class _Stored:
    """A table's stored entries, in the reference: a dict."""

    def __init__(self, entries: dict[str, bytes]) -> None:
        self._entries = entries

    def get(self, entry: str) -> bytes | None:
        return self._entries.get(entry)

    def scan(self, start: str, stop: str | None, reverse: bool) -> Any:
        inside = (e for e in self._entries if start <= e and (stop is None or e < stop))
        return ((e, self._entries[e]) for e in sorted(inside, reverse=reverse))


class Reference:
    """Runs a workflow in memory. `feed` events, `drain`, `tick` the clock, then look."""

    def __init__(self, workflow: Workflow, clock: int = 0) -> None:
        self.workflow = workflow
        self.clock = clock
        self.highest: int | None = None
        """The greatest ts of any event so far, on any stream: how far time has come."""
        self.slates: dict[Owner, ReferenceSlate] = {}
        self.forgotten: dict[Owner, int] = {}
        """The last update of each slate that a function has forgotten."""
        self.streams: dict[str, list[Event]] = {name: [] for name in workflow.streams}
        self.dead_letters: list[DeadLetter] = []
        for update in workflow.updates:
            if update.slate is not Table:
                slate_codec(update.slate)  # a slate that cannot be coded is found here, at once
        self._calls = {update.name: per_event(update) for update in workflow.updates}
        self._delays = workflow.delays
        self.heap: list[Entry] = []
        """Events and timers to come."""
        self.ended: int | None = None
        """The last end of event time: timers up to it wait for an event that is later."""
        self.reach: dict[str, int] = {}
        """The longest time that an event of each update has set a timer ahead."""
        self.fed_since_end = False
        """True if an event has come since event time was last ended."""
        self.returning: list[Entry] | None = None
        """While functions are closed: events along feedback edges, for the next time round."""

    def feed(self, events: Iterable[Event]) -> None:
        """Put events onto their streams; `drain` processes them."""
        for event in events:
            self.fed_since_end = True
            self._publish(event)

    def set_aside(self, event: Event, missed: int) -> None:
        """Take a late event, which has missed the horizon `missed`: no function of its stream gets
        it, but streams of notices do (model/late_notice.py)."""
        self.fed_since_end = True
        for stream, streams in late_notices(self.workflow, event.stream).items():
            notice = late_notice(stream, streams, event, missed)
            self._publish(notice._replace(value=asdict(notice.value)))

    def give_again(self, letter: DeadLetter) -> None:
        """Retry a dead letter: only the function that failed gets it; `drain` processes it."""
        assert letter.function is not None, "it never was an event: feed its record"
        assert letter.timer is None, "a timer that has fired is spent"
        value = encode_value(letter.value)
        entry = (letter.ts, EVENT, letter.function, letter.key, letter.stream, value)
        heapq.heappush(self.heap, entry)

    def drain(self) -> None:
        """Process every event, and every event-time timer up to the last event."""
        left: list[Entry] = []  # timers that an end has left, while events before it are processed
        while self.heap:
            ts, kind, name, key, detail, value = entry = self.heap[0]
            if self.highest is None or ts > self.highest:
                break
            heapq.heappop(self.heap)
            if kind == EVENT:
                self.deliver(name, Event(detail, ts, key, decode_value(value)))
            elif not self._is_past_end:
                left.append(entry)
            elif self._is_set((name, key), detail, "event", ts):
                self.fire((name, key), detail, Timer(ts, key, detail, "event"))
        for entry in left:
            heapq.heappush(self.heap, entry)
        if left and self._is_past_end:
            self.drain()

    @property
    def _is_past_end(self) -> bool:
        """True if event time was never ended, or has moved past its last end."""
        return self.ended is None or (self.highest is not None and self.highest > self.ended)

    def tick(self, clock: int) -> None:
        """Move the wall clock forward and fire the wall timers that it passes."""
        self.clock = max(self.clock, clock)
        due = sorted(
            (at, owner, name)
            for owner, slate in self.slates.items()
            for name, (kind, at) in slate.timers.items()
            if kind == "wall" and at <= self.clock
        )
        for at, owner, name in due:
            if self._is_set(owner, name, "wall", at):
                self.fire(owner, name, Timer(at, owner[1], name, "wall", self.highest or 0))
        self.drain()

    def _publish(self, event: Event, emitter: str | None = None) -> None:
        value = encode_value(event.value)
        self.streams[event.stream].append(event._replace(value=decode_value(value)))
        self.highest = event.ts if self.highest is None else max(self.highest, event.ts)
        for reader in self.workflow.subscribers(event.stream):
            entry = (event.ts, EVENT, reader.name, event.key, event.stream, value)
            edge = (emitter or "", event.stream, reader.name)
            if self.returning is not None and edge in self.workflow.feedback:
                self.returning.append(entry)
            else:
                heapq.heappush(self.heap, entry)

    def deliver(self, name: str, event: Event) -> None:
        function = self.workflow.function(name)
        if isinstance(function, Map):
            self._guarded(function, event, None, lambda: self._map(function, event))
        else:
            self._guarded(function, event, None, lambda: self._update(function, event))

    def _map(self, function: Map, event: Event) -> list[Event]:
        events = []
        for effect in effects(function.function(_copied(event))):
            if not isinstance(effect, Emit):
                raise not_an_effect(effect)
            events.append(_carried(emitted(function, effect, event, self._delays)))
        return events

    def _update(self, update: Update, event: Event) -> list[Event]:
        owner = (update.name, event.key)
        slate = self.slates.get(owner)
        if slate is None or self._expired(update, slate, event.ts):
            slate = ReferenceSlate(last=event.ts)
        last = max(slate.last, event.ts)
        if update.algebra is not None:
            self._merge(update, update.algebra, _copied(event), slate, last)
            return []
        return self._apply(update, self._calls[update.name], _copied(event), slate, last, event)

    def _merge(
        self, update: Update, algebra: Algebra, event: Event, slate: ReferenceSlate, last: int
    ) -> None:
        """Merge the lifted event into the slate of an aggregate."""
        codec = slate_codec(update.slate)
        held = algebra.read(codec.decode(slate.data)) if slate.data else algebra.zero()
        data = codec.encode(algebra.write(algebra.merge(held, algebra.lift(event))))
        if len(data) > self.workflow.slate_limit:
            raise over_limit(len(data), self.workflow.slate_limit)
        self.slates[update.name, event.key] = ReferenceSlate(last, data)

    def fire(self, owner: Owner, name: str, timer: Timer) -> bool:
        """Run the timer function of an owner whose timer is due; the timer is then spent.

        Returns False if the timer died because its slate has expired.
        """
        update = self.workflow.update(owner[0])
        slate = self.slates[owner]
        del slate.timers[name]
        reached = timer.reached if timer.clock == "wall" else timer.ts
        if self._expired(update, slate, reached) or update.on_timer is None:
            return False
        on_timer = update.on_timer
        as_event = Event("", timer.now, timer.key, None)
        self._guarded(
            update,
            as_event,
            name,
            lambda: self._apply(update, on_timer, timer, slate, slate.last, as_event),
        )
        return True

    def _apply(
        self,
        update: Update,
        function: Callable[..., Any],
        given: Event | Timer,
        slate: ReferenceSlate,
        last: int,
        event: Event,
    ) -> list[Event]:
        """Call a function with a slate; if it succeeds, store the slate and return the emits."""
        limit = self.workflow.slate_limit
        stored = dict(slate.entries)
        if update.slate is Table and stored and slate.version != update.version:
            stored = migrated_entries(update, slate.version, stored)
        table = Table(_Stored(stored), encode_value, decode_value, limit)
        if update.slate is Table:
            memory: Any = table
        elif slate.data:
            memory = read_slate(update, slate.version, slate.data)
        else:
            memory = slate_codec(update.slate).fresh()
        firing = isinstance(given, Timer)
        events, timers, forgotten = [], dict(slate.timers), False
        reach = self.reach.get(update.name, 0)
        for effect in effects(function(given, memory)):
            if isinstance(effect, Emit):
                events.append(_carried(emitted(update, effect, event, self._delays)))
            elif isinstance(effect, SetTimer):
                if update.on_timer is None:
                    raise no_timer_function(update)
                now = event.ts if effect.clock == "event" else self.clock
                same = firing and isinstance(given, Timer) and given.clock == effect.clock
                at = timer_time(effect, now, firing=same)
                timers[effect.name] = (effect.clock, at)
                if effect.clock == "event" and at != END and not firing:
                    reach = max(reach, at - now)
            elif isinstance(effect, Forget):
                forgotten = True
            else:
                raise not_an_effect(effect)
        owner = (update.name, event.key)
        if forgotten:
            self.reach[update.name] = reach
            self.slates.pop(owner, None)
            self.forgotten[owner] = last
            return events
        entries = stored
        for entry, value in table.changes().items():
            if value is None:
                entries.pop(entry, None)
            else:
                entries[entry] = value
        data = b"" if update.slate is Table else readable_slate(update.slate, memory)
        if len(data) > limit:
            raise over_limit(len(data), limit)
        self.reach[update.name] = reach
        self.slates[owner] = ReferenceSlate(last, data, entries, timers, update.version)
        for name, (clock, at) in timers.items():
            if clock == "event" and slate.timers.get(name) != (clock, at):
                heapq.heappush(self.heap, (at, TIMER, update.name, event.key, name, b""))
        return events

    def _guarded(
        self,
        function: Map | Update,
        event: Event,
        timer: str | None,
        work: Callable[[], list[Event]],
    ) -> None:
        """Publish what `work` emits, or make a dead letter of its input if it raises."""
        try:
            events = work()
        except FAILURES as error:
            if self.workflow.on_error == "fail" or isinstance(error, LookupFailed):
                raise FunctionError(
                    f"{function.where}, key {event.key!r}: {described(error)}"
                ) from error
            self.dead_letters.append(
                DeadLetter(
                    function.name,
                    event.stream,
                    event.ts,
                    event.key,
                    event.value,
                    described(error),
                    timer=timer,
                )
            )
            return
        for emitted_event in events:
            self._publish(emitted_event, function.name)

    def _is_set(self, owner: Owner, name: str, clock: Clock, at: int) -> bool:
        slate = self.slates.get(owner)
        return slate is not None and slate.timers.get(name) == (clock, at)

    @staticmethod
    def _expired(update: Update, slate: ReferenceSlate, ts: int) -> bool:
        return update.ttl is not None and ts - slate.last > update.ttl


def _copied(event: Event) -> Event:
    """Returns a copy that the function may keep or change; the input itself stays as it came."""
    return event._replace(value=decode_value(encode_value(event.value)))


def _carried(event: Event) -> Event:
    """Returns a copy of an emitted event; CodecError if a stream cannot carry it.

    The copy is made when the event is yielded: later changes by the function (`emit(value=slate)`,
    then more changes to the slate) are not part of it.
    """
    if not is_unicode(event.key):
        raise CodecError(f"emitted key {event.key!r} is not valid Unicode")
    return event._replace(value=decode_value(encode_value(event.value)))
