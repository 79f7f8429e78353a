"""A place that misbehaves as services do, by seed: for tests of what is built on places.

It fails before it does anything, fails after it has done it (the answer is lost), does it only
after the caller has given up, and is slow. Whatever it does is what a real service may do:
operations take effect whole or not at all, and a create never replaces anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random

from millstream.errors import PlaceError
from millstream.places.place import Listed, Place


@dataclass(frozen=True, slots=True)
class FaultRates:
    """The probability of each fault, from 0 to 1."""

    fails: float = 0.0
    loses_answer: float = 0.0
    """The request is carried out, but the caller gets an error."""
    comes_late: float = 0.0
    """The caller gets an error, and the request is carried out later."""
    slow: float = 0.0


class FaultyPlace:
    """A place around another one. For one thread, or for threads that need no fixed order of the
    draws."""

    def __init__(
        self,
        place: Place,
        seed: int,
        rates: FaultRates,
        pause: Callable[[], object] = lambda: None,
    ) -> None:
        self.address = place.address
        self.faults: Counter[str] = Counter()
        """The number of times that each fault occurred."""
        self._place, self._random, self._rates, self._pause = place, Random(seed), rates, pause
        self._late: list[Callable[[], object]] = []

    def put(self, name: str, data: bytes) -> None:
        self._changing(name, lambda: self._place.put(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return bool(self._changing(name, lambda: self._place.create(name, data)))

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        self._reading(name)
        return self._place.get(name, start, end)

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        self._reading(prefix)
        for number, listed in enumerate(self._place.list(prefix, after)):
            if number and self._drawn("fails", self._rates.fails / 10):
                raise self._failure(prefix, "the list broke off")
            yield listed

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._changing(name, lambda name=name: self._place.delete([name]))  # type: ignore[misc]

    def settle(self) -> None:
        """Do all that was asked for and has not come about yet."""
        while self._late:
            self._late.pop(0)()

    def _reading(self, name: str) -> None:
        self._arrive()
        if self._drawn("fails", self._rates.fails):
            raise self._failure(name, "it failed")

    def _changing(self, name: str, change: Callable[[], object]) -> object:
        self._arrive()
        if self._drawn("fails", self._rates.fails):
            raise self._failure(name, "it failed")
        if self._drawn("comes_late", self._rates.comes_late):
            self._late.append(change)
            raise self._failure(name, "no answer came")
        result = change()
        if self._drawn("loses_answer", self._rates.loses_answer):
            raise self._failure(name, "the answer was lost")
        return result

    def _arrive(self) -> None:
        """Time passes: something late may come about now."""
        if self._drawn("slow", self._rates.slow):
            self._pause()
        while self._late and self._random.random() < 0.3:
            self._late.pop(self._random.randrange(len(self._late)))()

    def _drawn(self, fault: str, rate: float) -> bool:
        struck = self._random.random() < rate
        self.faults[fault] += struck
        return struck

    def _failure(self, name: str, what: str) -> PlaceError:
        return PlaceError(f"{self.address}/{name}: {what} (a test made it so); try again")
