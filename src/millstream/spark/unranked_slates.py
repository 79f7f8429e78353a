"""Speaking of slates whose priority could not be told: once of each update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.stores.progress import Unranked


class UnrankedSlates:
    """Remembers which updates were spoken of. One a run."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def sentences(self, unranked: Mapping[str, Unranked], batch: int) -> Iterator[str]:
        """What to say of the slates that got no priority in a batch."""
        for update, one in unranked.items():
            if one.batch == batch and update not in self._said:
                self._said.add(update)
                yield (
                    f"update {update!r}, key {one.key!r}: its priority could not be told "
                    f"({one.error}); slates without one are the first to go when there is no "
                    "room: let priority give a finite number for every key and slate"
                )
