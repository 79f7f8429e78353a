"""Gives up open panes that nobody wants any more, or for which there is no room or no time."""

from __future__ import annotations

from millstream.agent.limits import Limits
from millstream.agent.panes.pane_pace import Pacing
from millstream.agent.panes.pane_reader import PaneReader
from millstream.agent.surroundings import Surroundings
from millstream.windows.panes.pane_maker import Making

MEASURED = 0.25
"""Seconds between two checks of the memory in use."""


class PaneRoom:
    """Looks at the open panes of a job between slices. Used by one thread."""

    def __init__(
        self, reading: PaneReader, pacing: Pacing, limits: Limits, around: Surroundings
    ) -> None:
        self._reading, self._pacing = reading, pacing
        self._limits, self._around = limits, around
        self._measured = around.clock()

    def look(self) -> None:
        """Gives up the panes that were cancelled, that fall behind, or that do not fit."""
        reading = self._reading
        wanted = [making for making in reading.panes.all if making.given_up is None]
        if not wanted or reading.over:
            return
        for making in wanted[:-1]:
            if making.pane is not None and self._pacing.cancelled(making.pane):
                reading.give_up(making, "cancelled")
        newest = wanted[-1]
        if newest is reading.panes.all[-1] and newest.pane is not None:
            why = self._pacing.look(newest.pane, reading.part_done)
            if why is not None:
                reading.give_up(newest, why)
                return
        if self._around.clock() - self._measured >= MEASURED:
            self._measured = self._around.clock()
            self._make_room(wanted)

    def _make_room(self, wanted: list[Making]) -> None:
        """Gives up panes that do not fit into memory, those with the most keys first."""
        largest = sorted(wanted, key=lambda making: len(making.partials))
        while largest and not self._limits.fits():
            making = largest.pop()
            self._around.say(
                f"pane {making.pane} does not fit into memory (--memory), and is given up"
            )
            self._reading.give_up(making, "memory")
            if not largest:
                self._limits.made_room()
