"""A place that fails, loses answers, and lets other things happen between two requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from millstream.errors import PlaceError
from millstream.places.place import Listed, Place


class InterruptedPlace:
    """Does to each request what the plan says next; without a plan it only passes requests on.

    fail            the request does not arrive
    lose            it arrives, and its answer is lost
    before, after   something else happens before or after it
    lose-after      its answer is lost, and then something else happens
    """

    def __init__(self, place: Place) -> None:
        self.address = place.address
        self._place = place
        self.plan: list[tuple[str, Callable[[], None]]] = []

    def _done(self, request: Callable[[], object]) -> object:
        if not self.plan:
            return request()
        (kind, act), left = self.plan[0], self.plan[1:]
        self.plan = []  # what happens in between is not disturbed
        if kind == "before":
            act()
        answer = None if kind == "fail" else request()
        if kind in ("after", "lose-after"):
            act()
        self.plan = left
        if kind in ("fail", "lose", "lose-after"):
            raise PlaceError(f"{self.address}: {kind}")
        return answer

    def put(self, name: str, data: bytes) -> None:
        self._done(lambda: self._place.put(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return bool(self._done(lambda: self._place.create(name, data)))

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        return self._done(lambda: self._place.get(name, start, end))  # type: ignore[return-value]

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        return self._done(lambda: iter([*self._place.list(prefix, after)]))  # type: ignore[return-value]

    def delete(self, names: Iterable[str]) -> None:
        self._done(lambda: self._place.delete(names))
