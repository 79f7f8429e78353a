"""Going back in the log: a pane that was kept for its round is made (see `rounds`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from millstream.agent.dead_letters import DeadLetters
from millstream.agent.files import Chunk
from millstream.agent.limits import Limits
from millstream.agent.pacing import Pacing
from millstream.agent.reading import Reading
from millstream.agent.rounds import Region, counts_of, with_mark
from millstream.agent.slicing import Slice
from millstream.agent.surroundings import Surroundings
from millstream.windows.message import Message
from millstream.windows.placed import PlacedJob


@dataclass(frozen=True)
class Remaker:
    """Makes panes of what was read before."""

    placed: PlacedJob
    node: str
    tree: str
    letters: DeadLetters
    pacing: Pacing
    limits: Limits
    around: Surroundings
    again: Callable[[Region], Iterator[tuple[Chunk, int, Slice | None]]]
    """Reads the lines of a region once more: their time if they bring none, and a slice of them, or
    None for a line that is too long."""

    def made_of(self, region: Region) -> Message | None:
        """The message of a pane: made, or why not. None if it was stopped before its end."""
        pane, node = region.message["pane"], self.node
        if self.pacing.cancelled(pane) or not region.message["nodes"][node]["shed"]:
            return with_mark(region.message, node, "cancelled")
        ended: list[Message] = []
        reading = Reading(
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
        was, now = (counts_of(one, node).all for one in (region.message, ended[0]))
        if len(ended) > 1 or was != now:  # each record must have one fate
            self.around.say(
                f"pane {pane} cannot be made any more: the log has {now} of its {was} lines"
            )
            return with_mark(region.message, node, "shed")
        if (gap := region.message["nodes"][node].get("gap")) is not None:  # found meanwhile
            ended[0]["nodes"][node]["gap"] = gap
        return ended[0]
