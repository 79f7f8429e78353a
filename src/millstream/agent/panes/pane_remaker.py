"""Goes back in the log to make a pane that was deferred to a later round (see `rounds`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from millstream.agent.limits import Limits
from millstream.agent.log.line_slices import Slice
from millstream.agent.log.log_files import LineChunk
from millstream.agent.panes.dead_letters import DeadLetters
from millstream.agent.panes.pane_pace import Pacing
from millstream.agent.panes.pane_reader import PaneReader
from millstream.agent.panes.rounds import Region, counts_of, with_mark
from millstream.agent.surroundings import Surroundings
from millstream.counted_nouns import counted
from millstream.windows.panes.message import Message
from millstream.windows.placed import PlacedJob


@dataclass(frozen=True)
class Remaker:
    """Makes panes from lines that were read before."""

    placed: PlacedJob
    node: str
    tree: str
    letters: DeadLetters
    pacing: Pacing
    limits: Limits
    around: Surroundings
    again: Callable[[Region], Iterator[tuple[LineChunk, int, Slice | None]]]
    """Reads the lines of a region again: yields their chunk, the time for lines that have none, and
    a slice of them, or None for a line that is too long."""

    def made_of(self, region: Region) -> Message | None:
        """Returns the message of the region's pane: the pane itself, or why it was not made.

        None if the agent was stopped before the end.
        """
        pane, node = region.message.pane, self.node
        if self.pacing.cancelled(pane) or not region.message.nodes[node].shed:
            return with_mark(region.message, node, "cancelled")
        ended: list[Message] = []
        reading = PaneReader(
            self.placed,
            node,
            self.tree,
            region.start,
            letters=self.letters,
            ended=lambda message, index: ended.append(message),
            choose=lambda pane: None,
        )
        try:
            for chunk, stamp, part in self.again(region):
                if part is None:
                    reading.leave_out(chunk)
                    continue
                reading.take(part.lines, stamp, part.place, self.around.wall())
                self.around.tick()
                if self.pacing.cancelled(pane):
                    return with_mark(region.message, node, "cancelled")
                if not self.limits.fits():
                    self.around.say(f"pane {pane} does not fit into memory (--memory)")
                    return with_mark(region.message, node, "memory")
                if self.around.stop.is_set():
                    return None
        except FileNotFoundError as error:
            self.around.say(f"pane {pane} cannot be made any more: {error}")
            return with_mark(region.message, node, "shed")
        if not ended:
            reading.end(pane + 1)
        was, now = (counts_of(message, node).all for message in (region.message, ended[0]))
        if len(ended) > 1 or was != now:  # each record must be counted exactly once
            lines = counted(was, "line")
            self.around.say(
                f"pane {pane} cannot be made any more: the log has {now:,} of its {lines}"
            )
            return with_mark(region.message, node, "shed")
        if gap := region.message.nodes[node].gap:  # found meanwhile
            ended[0].nodes[node].gap = gap
        return ended[0]
