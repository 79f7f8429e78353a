"""The boxes of a drawing and the edges between them, before and after they are placed."""

from __future__ import annotations

from dataclasses import dataclass, field

ROW = 26
"""The height of a slot, and the space between two boxes of a column."""

Pair = tuple[str, str, str]
"""An edge: the id of its emitter, its stream, the id of its reader."""


@dataclass
class Box:
    """A box in a column. A box without lines of text is the slot of a passing edge."""

    id: str
    column: int
    kind: str = "slot"
    lines: tuple[str, ...] = ()
    title: str = ""
    ports: tuple[str, ...] = ()
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = ROW
    before: list[str] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    def port(self, stream: str) -> float:
        """The y coordinate where a stream leaves. Ports are spread over the right side."""
        if stream not in self.ports:
            return self.middle
        room = self.height / len(self.ports)
        return self.y + room * (self.ports.index(stream) + 0.5)
