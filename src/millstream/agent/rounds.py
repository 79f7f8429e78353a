"""Panes in rounds, for an answer that is near enough (`Error`): a quarter of them first.

A node reads a block of its log and makes only the panes of the first round. Of the others it keeps
where they are, and what it would say if they were never made. When it has come to the end of the
block it goes back, and makes those of the second, the third and the fourth round, until the root
has closed their windows.

So panes are sent in another order than that of the log. The restart point is where the first pane
begins that is still to be made, and it has a list of those after it that were sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.agent.restart import Counts, Restart
from millstream.windows.drawing import block_of
from millstream.windows.fidelity import Error
from millstream.windows.job import Job
from millstream.windows.message import Manifest, Message, Why
from millstream.windows.shedding import round_of


@dataclass(frozen=True, slots=True)
class Region:
    """A pane that is to be made later: where it is, and what is known of it."""

    message: Message
    """That it is lost, with its records counted."""
    start: Restart
    end: list[dict[str, Any]]
    """The position after it."""


class Rounds:
    """What is to be made later, and what was sent before its turn. One thread."""

    def __init__(self, job: Job, node: str, restart: Restart) -> None:
        self._job, self._node = job, node
        self.in_rounds = isinstance(job.fidelity, Error)
        self._sent = {
            int(pane): (until, Counts(*counts)) for pane, (until, *counts) in restart.told.items()
        }
        """Panes from the restart point on, up to which, and what they had."""
        self._regions: dict[int, Region] = {}

    @property
    def deferred(self) -> int:
        """Records of panes that are to be made later."""
        return sum(counts_of(one.message, self._node).all for one in self._regions.values())

    def ahead(self, pane: int | None) -> Counts:
        """What was sent of panes from one on: after a start, of those that are read over again."""
        ahead = Counts()
        for one, (_, counts) in self._sent.items():
            if pane is not None and one >= pane:
                ahead = ahead.plus(counts)
        return ahead

    def later(self, pane: int) -> bool:
        """Whether a pane is not to be made now that the log has come to it."""
        if not self.in_rounds:
            return False
        return self.was_sent(pane) or round_of(self._job, self._node, pane) > 0

    def was_sent(self, pane: int) -> bool:
        return any(begin <= pane < until for begin, (until, _) in self._sent.items())

    def unsent(self, message: Message) -> list[Message]:
        """The message; of a run of panes without records, the parts that were not sent."""
        if message["until"] <= message["pane"] + 1:
            return [message]
        parts, begin = [], message["pane"]
        for pane, (until, _) in sorted(self._sent.items()):
            if begin < pane < message["until"]:
                parts.append((begin, pane))
            begin = max(begin, until) if pane < message["until"] else begin
        if begin < message["until"]:
            parts.append((begin, message["until"]))
        return [{**message, "pane": begin, "until": until} for begin, until in parts]

    def more_than_sent(self, message: Message) -> int:
        """Records of a pane that was sent before, and that were not in it: they are late."""
        sent = self._sent.get(message["pane"], (0, Counts()))[1]
        return counts_of(message, self._node).all - sent.all

    def defer(self, region: Region) -> None:
        """Keep a pane for later."""
        self._regions[region.message["pane"]] = region

    def due(self, pane: int | None) -> list[Region]:
        """What is to be made now that the log has come to a pane, or to its end: by rounds."""
        panes = self._job.span.panes
        block = None if pane is None else block_of(pane, panes)
        ready = [one for one in self._regions if block is None or block_of(one, panes) < block]
        ready.sort(key=lambda one: (block_of(one, panes), self._round(one), one))
        return [self._regions[one] for one in ready]

    def send(self, message: Message, here: Restart, counts: Counts) -> Restart:
        """The restart point after a message, if the log has come `here` and all that was sent
        before has these counts; `message` is counted in both."""
        self._regions.pop(message["pane"], None)
        base = here
        if self._regions:
            base = self._regions[min(self._regions)].start
        assert base.pane is not None
        if message["until"] > base.pane:
            self._sent[message["pane"]] = (message["until"], counts_of(message, self._node))
        self._sent = {one: sent for one, sent in self._sent.items() if sent[0] > base.pane}
        return replace(
            base,
            counts=counts.less(*(one for _, one in self._sent.values())),
            told={str(one): [until, *had.listed] for one, (until, had) in self._sent.items()},
            letters=here.letters,
            gaps=here.gaps,
            over=here.over,
        )

    def _round(self, pane: int) -> int:
        return round_of(self._job, self._node, pane)


def counts_of(message: Message, node: str) -> Counts:
    counts = Counts()
    counts.add(message["nodes"][node])
    return counts


def with_mark(message: Message, node: str, why: Why) -> Message:
    """What is said of a pane that was not made: why; or that there was nothing."""
    told = message["nodes"][node]
    if not told["shed"]:
        empty: Manifest = {**told, "mark": "empty", "why": None}
        return {**message, "nodes": {node: empty}}
    return {**message, "nodes": {node: {**told, "why": why}}}
