"""One action, step by step: read what is asked, carry it out, record that.

DESIGN
------
The records of the action's log are carried out in order, one after the other; what its carrier can
do at once goes together. A record is settled when it is carried out or has become a dead letter,
and then the position goes past it before the next one is tried. So a process that dies can make
only those be done again that were under way, and under the same ids. While one follows the other,
the position is forced to disk every tenth of a second: a power cut may repeat what was done since.

The position also says what is being tried, so that tries count over restarts, and anyone can see
it. The reader's mark in the log keeps retention from removing what waits; it may be behind.

A new action begins at the end of its log: what was there before it was an action is no request.

Clocks and chance come in. Nothing here waits: `step` says how long to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from millstream.actions.asked import Asked, decode_row
from millstream.actions.attempt import Again, Dead, Outcome, Policy, decide
from millstream.actions.letters import Letters
from millstream.actions.record import (
    Note,
    Position,
    Trying,
    make_folder,
    read_position,
    retry_until,
    write_position,
)
from millstream.errors import StoreError
from millstream.log.reader import Block, LogReader
from millstream.stores.home import Home, log_of

SYNC = 0.1
"""Seconds for which the position of what is carried out one by one need not be on disk."""
READER = "action"
"""The name under which an action's worker marks its place in the log."""


class Carrier(Protocol):
    """Carries records out: all that it is given, or none of them as far as it knows."""

    group: int
    """How many it takes at once."""

    def carry(self, asked: Sequence[Asked]) -> Outcome: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time and chance, from outside."""

    now: Callable[[], int]
    """The time of day in microseconds: to be shown, never to be counted on."""
    timer: Callable[[], float]
    """Seconds that only go up."""
    chance: Callable[[], float]
    """From 0 up to 1, at random."""


class Worker:
    """Carries out one action. It belongs to one thread, but for `abandon`."""

    def __init__(
        self,
        home: Home,
        action: str,
        carrier: Carrier,
        policy: Policy,
        clocks: Clocks,
        *,
        address: str = "",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Takes its place in the log; to be made before anything new is published there."""
        self.action = action
        self._store: Path = home.path
        self._id = home.facts.id
        self._carrier = carrier
        self._policy = policy
        self._clocks = clocks
        self._tell = tell
        self._guard = threading.Lock()
        self._abandoned = False
        self._dead = 0
        self._written, self._refused, self._synced = False, False, 0.0
        self._block: Block | None = None
        make_folder(home.path)
        self._log = LogReader(log_of(home.path, action))
        self._letters = Letters(home.path, action)
        found = read_position(home.path, action)
        if found is None:
            found = Position(self._log.end[1])
            if found.record:
                tell(f"{found.record:,} records from before it was one are not carried out")
        self._mark: list[int] = []
        self._mark_at(self._log.find(found.record))
        self.position = replace(found, address=address)
        self._write()
        self._note = Note(home.path, action)  # emptied: what was noted there is on disk now

    def step(self) -> float | None:
        """Carry out the next, and record it.

        Seconds to wait before the next step; None if nothing is left to be carried out.
        """
        with self._guard:
            if self._abandoned:
                return None
            if self._refused:
                self._write()
            asked = self._put_back() or self._next()
            if not asked:
                self._flush()
                return None
            first, trying = asked[0], self.position.trying
            if self._letters.last == first.id:  # given up by one who died before it was recorded
                return self._settle(first, 1, failed=True)
        if trying is None or trying.id != first.id:
            trying = Trying(first.id, 0, self._clocks.now(), 0, 0.0, 0.0, "")
        began = self._clocks.timer()
        last = self._clocks.now()
        outcome = self._carrier.carry(asked)
        with self._guard:
            if self._abandoned:
                return None
            tries = trying.tries + 1
            spent = trying.spent + self._clocks.timer() - began
            decision = decide(outcome, tries, spent, self._policy, self._clocks.chance())
            if isinstance(decision, Again):
                pause = decision.seconds
                again = replace(
                    trying,
                    tries=tries,
                    last=last,
                    spent=spent + pause,
                    pause=pause,
                    error=outcome.error,
                )
                self._to(replace(self.position, trying=again))
                return pause
            if isinstance(decision, Dead):
                self._letters.append(first, decision.error, tries, trying.since, last)
                self._tell_dead(first, decision.error)
                return self._settle(first, 1, failed=True)
            return self._settle(first, len(asked), failed=False)

    def abandon(self) -> None:
        """Let go, from another thread: whatever a try that is under way brings is not recorded."""
        with self._guard:
            self._abandoned = True
            self._letters.close()
            try:
                self._flush()
            except StoreError:
                pass  # it is noted

    def close(self) -> None:
        """Let go of all files."""
        with self._guard:
            self._carrier.close()
            self._note.close()
            self._log.close()
            self._letters.close()

    def _tell_dead(self, asked: Asked, error: str) -> None:
        """Say so, of the first, the tenth, the hundredth ...: there may be very many."""
        self._dead += 1
        if str(self._dead).strip("0") == "1":
            self._tell(
                f"key {asked.row.key!r} is a dead letter, number {self._dead:,} of this run: "
                f"{error}; see: millstream actions failed {self.action}"
            )

    def _settle(self, first: Asked, count: int, *, failed: bool) -> float:
        at = self.position
        done, dead = (0, count) if failed else (count, 0)
        self._to(
            replace(
                at,
                record=at.record if first.retry else at.record + count,
                retried=at.retried + count if first.retry else at.retried,
                done=at.done + done,
                failed=at.failed + dead,
                trying=None,
            )
        )
        return 0.0

    def _to(self, position: Position) -> None:
        """Go to a position. What a carrier does many of at once it finds again by the position on
        disk (see `lines`), and a try that failed is followed by a pause: there it is no cost."""
        simple = position.trying is None and position.failed == self.position.failed
        self.position, self._written = position, False
        recent = self._clocks.timer() - self._synced < SYNC
        if recent and simple and self._carrier.group == 1:
            self._note.write(position)
        else:
            self._write()

    def _flush(self) -> None:
        if not self._written:
            self._write()

    def _write(self) -> None:
        self._refused = True
        write_position(self._store, self.action, self.position)
        self._refused, self._written, self._synced = False, True, self._clocks.timer()

    def _put_back(self) -> list[Asked]:
        """The next dead letter that is to be carried out again, if any is."""
        number = self.position.retried
        if number >= retry_until(self._store, self.action):
            return []
        letter = self._letters.read(number)
        if letter is None:
            raise StoreError(
                f"{self._store}: dead letter {number} of action {self.action!r} is to be carried "
                f"out again, and is gone; delete {self._store}/actions/{self.action}+retry"
            )
        return [letter.again(self._id)]

    def _next(self) -> list[Asked]:
        """What is asked for next, as much as the carrier takes at once."""
        record = self.position.record
        block = self._block
        if block is None or not block.first <= record < block.first + block.count:
            block = self._block = self._read(record)
            if block is None:
                return []
            record = self.position.record
        at = record - block.first
        lines = block.lines[at : at + self._carrier.group]
        return [
            Asked.of(self._id, self.action, number, decode_row(line))
            for number, line in enumerate(lines, record)
        ]

    def _read(self, record: int) -> Block | None:
        """The block that has a record; None if it is not there yet."""
        log = self._log
        log.reload()
        if record > log.end[1]:
            raise StoreError(
                f"log {log.path}: it ends at record {log.end[1]}, and action {self.action!r} was "
                f"carried out up to {record}; was the log replaced? Restore it, or delete "
                f"{self._store}/actions/{self.action} to begin at its end"
            )
        if record == log.end[1]:
            self._mark_at(log.end)
            return None
        position = log.find(record)
        if position[1] > record:  # it was no action for a while, and nothing waited for it
            gone = position[1] - record
            self._tell(f"{gone:,} records are gone from its log, and are not carried out")
            missed = self.position.missed + gone
            self._to(replace(self.position, record=position[1], missed=missed, trying=None))
        self._mark_at(position)
        return next(iter(log.blocks(position[0], log.take(position, 1)[0])))

    def _mark_at(self, position: list[int]) -> None:
        """Tell the log that nothing before the position is needed any more."""
        if position != self._mark:
            self._log.commit(READER, position)
            self._mark = list(position)
