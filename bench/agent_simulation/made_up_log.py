"""The log of a node: lines that are written as the time goes, and the truth about them."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from random import Random

from bench.agent_simulation.scenario import LogModel

SECOND = 1_000_000
BURST = 0.2
"""Seconds that the lines of a write are apart, at most."""


class Truth:
    """The contents of all nodes' logs, lost or not."""

    def __init__(self, pane: int) -> None:
        self._pane = pane
        self.keys: dict[int, Counter[str]] = {}
        """By pane: how many lines each key has."""
        self.lines: dict[tuple[str, int], int] = {}
        """By node and pane."""
        self.broken: Counter[str] = Counter()
        """By node: lines that cannot be read."""
        self.written: Counter[str] = Counter()
        """By node: lines of both kinds."""

        self.last: dict[str, int] = {}
        """By node: the last pane that has a line."""

    def note(self, node: str, time: int, key: str) -> None:
        pane = time // self._pane
        self.last[node] = max(pane, self.last.get(node, pane))
        self.keys.setdefault(pane, Counter())[key] += 1
        self.lines[node, pane] = self.lines.get((node, pane), 0) + 1


class MadeUpLog:
    """A log file that only grows. Its lines are generated when it is read, with the times at which
    they would have been written."""

    def __init__(
        self,
        node: str,
        model: LogModel,
        truth: Truth,
        random: Random,
        wall: float,
        begin: float,
        end: float,
    ) -> None:
        """`wall` is the time of day of the node at the world's time 0; the first write is after
        `begin`, the last before `end`, in the world's time."""
        self.node = node
        self._model, self._truth, self._random = model, truth, random
        self._wall, self._end = wall, end
        self.next = begin + random.uniform(0.0, model.every)
        """When the next write is; after the end, never."""
        self.lines: list[bytes] = []
        self.offsets: list[int] = [0]
        """Where each line begins, and where the next one will."""
        self._disordered = random.random() < model.disordered
        weights = [1 / (rank + 1) for rank in range(model.keys)]
        self._weights = list(accumulate(weights))
        self._keys = [f"k{rank}" for rank in range(model.keys)]
        self._idle_until = 0.0

    @property
    def over(self) -> bool:
        return self.next >= self._end

    def write(self, now: float) -> None:
        """Writes the lines that would exist by now."""
        while self.next <= now and not self.over:
            self._write_once(self.next)
            self.next += self._model.every

    def _write_once(self, at: float) -> None:
        random, model = self._random, self._model
        if at < self._idle_until or random.random() < model.idle:
            if random.random() < 0.1:
                self._idle_until = at + random.uniform(5.0, 40.0)
            return
        count = random.randint(0, 2 * model.lines)
        times = sorted(random.uniform(at - BURST, at) for _ in range(count))
        for time in times:
            stamp = int((self._wall + time) * SECOND)
            if self._disordered and random.random() < 0.2:
                stamp -= int(random.uniform(0.0, 3.0) * SECOND)
            self._truth.written[self.node] += 1
            if random.random() < model.broken:
                self._truth.broken[self.node] += 1
                self._append(b'{"t":')
                continue
            key = random.choices(self._keys, cum_weights=self._weights)[0]
            self._truth.note(self.node, stamp, key)
            self._append(f'{{"t":{stamp},"k":"{key}"}}'.encode())

    def _append(self, line: bytes) -> None:
        self.lines.append(line)
        self.offsets.append(self.offsets[-1] + len(line) + 1)
