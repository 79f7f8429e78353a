"""The disk of a simulated agent, in memory. It outlives the agent's process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from bench.agent_simulation.virtual_threads import VirtualCondition
from millstream.agent.delivery.outbox import Group, Outbox, OutboxEntry, Say, _cut
from millstream.agent.job_status import JobStatus
from millstream.agent.panes.dead_letters import DeadLetters


class MemoryOutbox(Outbox):
    """An outbox without files. What a file would hold is kept as it was put in."""

    def __init__(self, most_bytes: int, say: Say) -> None:
        self._most, self._say = most_bytes, say
        self._changed = cast(Any, VirtualCondition())
        self._waiting, self._sent = {}, set()
        self._kept: dict[int, list[OutboxEntry]] = {}
        self._bytes = self._puts = 0
        self._next = 1
        self._after = None

    def put(self, entries: Sequence[OutboxEntry]) -> None:
        for part in _cut(entries):
            number = self._next
            self._kept[number] = part
            self._add(Group(number, sum(len(entry.body) for entry in part)))
        if entries:
            self._after = entries[-1].after
            self.wake()

    def read(self, group: Group) -> list[OutboxEntry]:
        return self._kept[group.number]

    def remove(self, group: Group) -> None:
        with self._changed:
            del self._waiting[group.number], self._kept[group.number]
            self._bytes -= group.size
            self._changed.notify_all()


class MemoryLetters(DeadLetters):
    """Dead letters that are only counted."""

    def __init__(self, path: Path, at: list[int]) -> None:
        self.first = None
        self._bytes, self.kept, self.cut = at

    @property
    def state(self) -> list[int]:
        return [self._bytes, self.kept, self.cut]

    def add(self, file: str, offset: int, line: bytes, error: str) -> None:
        self.kept += 1

    def gap(self, words: str) -> None:
        self.kept += 1

    def close(self) -> None:
        """Does nothing: there is no file."""


class MemoryState:
    """The folder of an agent, as far as its panes need it."""

    folder = Path("/nowhere")

    def status(self, told: JobStatus) -> None:
        """Nobody reads it."""
