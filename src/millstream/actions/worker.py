"""One action, step by step: reads an event, carries it out, records that.

DESIGN
------
The records of the action's log are carried out in order, one after the other. A carrier that can do
several at once gets a group. A record is settled when it is carried out or has become a dead
letter; then the position moves past it before the next one is tried. So after a crash only the
records that were under way can be carried out again, and under the same ids. While records follow
each other closely, the position is forced to disk every tenth of a second (every second in a shared
store): a power cut may repeat what was done since.

The position also contains the record that is being tried, so tries are counted across restarts, and
anyone can see it. The reader's mark in the log keeps retention from removing waiting records; it
may lag behind the position.

A new action begins at the end of its log: earlier records were written when the stream was only an
output, and are not requests.

Clocks and randomness are arguments. Nothing here waits: `step` returns how long to wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from millstream.actions.action_events import ActionEvent, decode_row
from millstream.actions.attempt import Again, AttemptOutcome, Dead, Policy, decide
from millstream.actions.letters import Letters
from millstream.actions.record import ActionRecords, Note, PendingRetry, Position, make_folder
from millstream.counted_nouns import counted, verb
from millstream.errors import StoreError
from millstream.log.reader import Block
from millstream.log.stream_logs import AT_THE_END, FolderLogs, StreamLogs
from millstream.stores.home import Home

READER = "action"
"""The reader name under which a worker marks its place in the log."""


class Carrier(Protocol):
    """Carries out a group of records. If a call fails, it must be assumed that none was carried
    out."""

    group: int
    """The maximum number of records that it takes at once."""

    def carry(self, asked: Sequence[ActionEvent]) -> AttemptOutcome: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time and randomness, from outside."""

    now: Callable[[], int]
    """The time of day in microseconds. For display only, never for decisions."""
    timer: Callable[[], float]
    """A monotonic clock, in seconds."""
    chance: Callable[[], float]
    """A random number from 0 up to 1."""


class Worker:
    """Carries out one action. Belongs to one thread, except for `abandon`."""

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
        logs: StreamLogs | None = None,
        records: ActionRecords | None = None,
    ) -> None:
        """Records its position in the log. Must be created before anything new is published there.

        `logs` and `records` default to those in the store's folder.
        """
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
        self._logs: StreamLogs = logs or FolderLogs(home.path / "logs")
        self._records = records or ActionRecords(home.path)
        position = self._records.read_position(action)
        record = AT_THE_END if position is None else position.record
        self._log = self._logs.reader(action, record=record)
        self._letters = Letters(self._logs, action)
        if position is None:
            position = Position(self._log.end[1])
            if position.record:
                tell(
                    f"{counted(position.record, 'record')} from before it was an action "
                    f"{verb(position.record, 'is', 'are')} not carried out"
                )
        self._mark: list[int] = []
        self._mark_at(self._log.find(position.record))
        self.position = replace(position, address=address)
        self._write()
        self._note = Note(home.path, action)  # emptied: its content is on disk now

    def step(self) -> float | None:
        """Carries out the next record or group, and records it.

        Returns the seconds to wait before the next step; None if nothing is left to carry out.
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
            if self._letters.last == first.id:  # given up before a crash, but not recorded
                return self._settle(first, 1, failed=True)
        if trying is None or trying.id != first.id:
            trying = PendingRetry(first.id, 0, self._clocks.now(), 0, 0.0, 0.0, "")
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
        """Stops the worker, from another thread. The result of a try that is under way is not
        recorded."""
        with self._guard:
            self._abandoned = True
            self._letters.close()
            try:
                self._flush()
            except StoreError:
                pass  # the note has the position

    def close(self) -> None:
        """Closes all files."""
        with self._guard:
            self._carrier.close()
            self._note.close()
            self._log.close()
            self._letters.close()

    def _tell_dead(self, asked: ActionEvent, error: str) -> None:
        """Reports the first, the tenth, the hundredth ... dead letter: there may be very many."""
        self._dead += 1
        if str(self._dead).strip("0") == "1":
            self._tell(
                f"key {asked.row.key!r} is a dead letter, number {self._dead:,} of this run: "
                f"{error}; see: millstream actions failed {self.action}"
            )

    def _settle(self, first: ActionEvent, count: int, *, failed: bool) -> float:
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
        """Moves to a position, and writes it to disk or only to the note.

        A carrier of groups recovers from the position on disk (see `lines`), which is therefore
        always written. A pause follows a failed try, so writing to disk delays nothing there.
        """
        simple = position.trying is None and position.failed == self.position.failed
        self.position, self._written = position, False
        recent = self._clocks.timer() - self._synced < self._records.sync_seconds
        if recent and simple and self._carrier.group == 1:
            self._note.write(position)
        else:
            self._write()

    def _flush(self) -> None:
        if not self._written:
            self._write()

    def _write(self) -> None:
        self._refused = True
        self._records.write_position(self.action, self.position)
        self._refused, self._written, self._synced = False, True, self._clocks.timer()

    def _put_back(self) -> list[ActionEvent]:
        """The next dead letter to carry out again, if any."""
        number = self.position.retried
        if number >= self._records.retry_until(self.action):
            return []
        letter = self._letters.read(number)
        if letter is None:
            raise StoreError(
                f"{self._store}: dead letter {number} of action {self.action!r} must be carried "
                f"out again, but is gone; delete {self._store}/actions/{self.action}+retry"
            )
        return [letter.again(self._id)]

    def _next(self) -> list[ActionEvent]:
        """The next records to carry out, as many as the carrier takes at once."""
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
            ActionEvent.of(self._id, self.action, number, decode_row(line))
            for number, line in enumerate(lines, record)
        ]

    def _read(self, record: int) -> Block | None:
        """Returns the block that contains a record; None if it is not there yet."""
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
        if position[1] > record:  # retention did not wait while the stream was not an action
            gone = position[1] - record
            are = verb(gone, "is", "are")
            self._tell(
                f"{counted(gone, 'record')} {are} gone from its log, and {are} not carried out"
            )
            missed = self.position.missed + gone
            self._to(replace(self.position, record=position[1], missed=missed, trying=None))
        self._mark_at(position)
        return next(iter(log.blocks(position[0], log.take(position, 1)[0])))

    def _mark_at(self, position: list[int]) -> None:
        """Tells the log that nothing before the position is needed any more."""
        if position != self._mark:
            self._logs.commit(self.action, READER, position)
            self._mark = list(position)
