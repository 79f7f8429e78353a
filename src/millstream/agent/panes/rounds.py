"""Makes panes in rounds, for an answer that is close enough (`Error`): a quarter of them first.

A node reads a block of its log and makes only the panes of the first round. For each of the others
it keeps the place, and the message to send if the pane is never made. At the end of the block it
goes back, and makes the panes of the second, the third and the fourth round, until the root has
closed their windows.

So panes are not sent in the order of the log. The restart point is the beginning of the first pane
that is still to be made, and it lists the later panes that were sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace as with_fields

from millstream.agent.log.log_files import Mark
from millstream.agent.panes.restart import Counts, Restart
from millstream.windows.fidelity import Error
from millstream.windows.job import Job
from millstream.windows.panes.message import Message, Why
from millstream.windows.panes.pane_rank import block_of
from millstream.windows.panes.shedder import round_of


@dataclass(frozen=True, slots=True)
class Region:
    """A deferred pane: its place in the log, and its message so far."""

    message: Message
    """Says that the pane is lost, with its records counted."""
    start: Restart
    end: list[Mark]
    """The position after it."""


class Rounds:
    """The deferred panes, and those sent ahead of the restart point. Used by one thread."""

    def __init__(self, job: Job, node: str, restart: Restart) -> None:
        self._job, self._node = job, node
        self.in_rounds = isinstance(job.fidelity, Error)
        self._sent = {
            int(pane): (until, Counts(*counts)) for pane, (until, *counts) in restart.told.items()
        }
        """Runs of panes sent after the restart point: first pane -> (pane after the last,
        counts)."""
        self._regions: dict[int, Region] = {}

    @property
    def deferred(self) -> int:
        """The number of records in deferred panes."""
        regions = self._regions.values()
        return sum(counts_of(region.message, self._node).all for region in regions)

    def ahead(self, pane: int | None) -> Counts:
        """Returns the counts of sent panes from `pane` on. After a restart these are read again."""
        ahead = Counts()
        for first, (_, counts) in self._sent.items():
            if pane is not None and first >= pane:
                ahead = ahead.plus(counts)
        return ahead

    def later(self, pane: int) -> bool:
        """True if a pane must not be made when the log first comes to it."""
        if not self.in_rounds:
            return False
        return self.was_sent(pane) or round_of(self._job, self._node, pane) > 0

    def was_sent(self, pane: int) -> bool:
        return any(begin <= pane < until for begin, (until, _) in self._sent.items())

    def unsent(self, message: Message) -> list[Message]:
        """Returns the message; of a run of empty panes, only the parts that were not sent."""
        if message.until <= message.pane + 1:
            return [message]
        parts, begin = [], message.pane
        for pane, (until, _) in sorted(self._sent.items()):
            if begin < pane < message.until:
                parts.append((begin, pane))
            begin = max(begin, until) if pane < message.until else begin
        if begin < message.until:
            parts.append((begin, message.until))
        return [with_fields(message, pane=begin, until=until) for begin, until in parts]

    def more_than_sent(self, message: Message) -> int:
        """Returns the number of records that were found after their pane was sent. They count as
        late."""
        sent = self._sent.get(message.pane, (0, Counts()))[1]
        return counts_of(message, self._node).all - sent.all

    def defer(self, region: Region) -> None:
        """Keep a pane for a later round."""
        self._regions[region.message.pane] = region

    def due(self, pane: int | None) -> list[Region]:
        """Returns the panes to make when the log has come to `pane`, or to its end (None), ordered
        by rounds."""
        panes = self._job.span.panes
        block = None if pane is None else block_of(pane, panes)
        ready = [
            deferred
            for deferred in self._regions
            if block is None or block_of(deferred, panes) < block
        ]
        ready.sort(key=lambda number: (block_of(number, panes), self._round(number), number))
        return [self._regions[deferred] for deferred in ready]

    def send(self, message: Message, here: Restart, counts: Counts) -> Restart:
        """Returns the restart point after a message. `here` is the point up to which the log was
        read, `counts` are those of all messages sent. Both include this message."""
        self._regions.pop(message.pane, None)
        base = here
        if self._regions:
            base = self._regions[min(self._regions)].start
        if base.pane is not None:  # otherwise the log is empty so far
            if message.until > base.pane:
                self._sent[message.pane] = (message.until, counts_of(message, self._node))
            self._sent = {first: sent for first, sent in self._sent.items() if sent[0] > base.pane}
        return with_fields(
            base,
            counts=counts.less(*(sent for _, sent in self._sent.values())),
            told={str(first): [until, *sent.listed] for first, (until, sent) in self._sent.items()},
            letters=here.letters,
            gaps=here.gaps,
            over=here.over,
        )

    def _round(self, pane: int) -> int:
        return round_of(self._job, self._node, pane)


def counts_of(message: Message, node: str) -> Counts:
    counts = Counts()
    counts.add(message.nodes[node])
    return counts


def with_mark(message: Message, node: str, why: Why) -> Message:
    """Returns the message of a pane that was not made: with the reason, or marked as empty."""
    manifest = message.nodes[node]
    if not manifest.shed:
        return with_fields(message, nodes={node: with_fields(manifest, mark="empty", why=None)})
    return with_fields(message, nodes={node: with_fields(manifest, why=why)})
