"""The agents that have room for a child, by their distance from the root."""

from __future__ import annotations

from collections.abc import Callable


class FreeSeats:
    """Finds the nearest agent to the root. Equally near agents take turns, so they fill evenly."""

    def __init__(self) -> None:
        self._depths: dict[str, int] = {}
        self._levels: dict[int, dict[str, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._depths)

    def note(self, name: str, depth: int | None) -> None:
        """Record that an agent has room at this depth; None if it has none."""
        known = self._depths.get(name)
        if known == depth:
            return
        if known is not None:
            del self._levels[known][name]
            del self._depths[name]
        if depth is not None:
            self._depths[name] = depth
            self._levels.setdefault(depth, {})[name] = None

    def remove(self, name: str) -> None:
        self.note(name, None)

    def first(self, fits: Callable[[str], bool]) -> str | None:
        """Returns the nearest agent that fits, and moves it to the end of its level."""
        for depth in sorted(self._levels):
            level = self._levels[depth]
            for name in level:
                if fits(name):
                    del level[name]
                    level[name] = None
                    return name
        return None
