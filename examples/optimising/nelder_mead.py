"""Nelder and Mead's simplex search, asking one comparison at a time.

The search never sees a value of the function: it needs only to be told which of two points is
better. So it can be driven by experiments, and what it knows is a small value that fits a slate:

    search = begin(parameters)
    while not search.finished:
        challenger, holder = question(search)
        search = answer(search, compare(challenger, holder))    # 1 better, 0 equal, -1 worse

It is modified in four ways: by comparisons only; "equal" is an answer; points stay within bounds;
and where the simplex has become small, the search begins again around the best point with smaller
steps, since a wrong answer may have led it astray.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Point = list[float]
Phase = Literal["order", "reflect", "lead", "expand", "worst", "outside", "inside"]
REFLECT, EXPAND, CONTRACT, SHRINK = 1.0, 2.0, 0.5, 0.5


@dataclass(frozen=True, slots=True)
class Search:
    """The state of the search. It has plain values only, since it is a field of a slate.

    `vertices` are the simplex, the best first as far as they are in order. In phase "order" the
    vertex at `at` is on its way forward, not past `floor`; those up to `ordered` are in order
    without it.
    """

    low: Point
    high: Point
    steps: Point
    small: float
    rounds: int
    vertices: list[Point]
    phase: Phase = "order"
    at: int = 1
    floor: int = 0
    ordered: int = 1
    reflection: Point | None = None
    trial: Point | None = None
    asked: int = 0
    finished: bool = False

    @property
    def best(self) -> Point:
        """The best point known; while the first simplex is put in order, the start."""
        return self.vertices[0]


def begin(
    parameters: Mapping[str, Mapping[str, float]], *, small: float = 0.05, rounds: int = 2
) -> Search:
    """The search from each parameter's `start`, by its `step`, between its `low` and `high`.

    A round ends when no vertex is further than `small` first steps from the best.
    """
    start, steps = ([limits[key] for limits in parameters.values()] for key in ("start", "step"))
    low, high = ([limits[key] for limits in parameters.values()] for key in ("low", "high"))
    search = Search(low, high, steps, small, rounds, [])
    return replace(search, vertices=_simplex(search, start))


def question(search: Search) -> tuple[Point, Point]:
    """The two points to compare: one that wants a place, and the one that holds it."""
    n = len(search.low)
    reflection = search.reflection or search.best
    if search.phase == "order":
        return search.vertices[search.at], search.vertices[search.at - 1]
    if search.phase == "reflect":
        return reflection, search.vertices[n - 1]
    if search.phase == "lead":
        return reflection, search.vertices[0]
    if search.phase == "worst":
        return reflection, search.vertices[n]
    holder = search.vertices[n] if search.phase == "inside" else reflection
    return search.trial or search.best, holder


def answer(search: Search, verdict: int) -> Search:
    """The search after its question was answered: over 0 if the first is better, 0 if equal."""
    n = len(search.low)
    search = replace(search, asked=search.asked + 1)
    better = verdict > 0
    phase = search.phase
    if phase == "order":
        return _moved(search) if better else _placed(search)
    if phase == "reflect":
        if not better:
            return replace(search, phase="worst")
        return _expanding(search) if n == 1 else replace(search, phase="lead")
    if phase == "lead":
        # Not the best, but better than the second worst: it need not be compared with that again.
        return _expanding(search) if better else _taken(search, search.reflection, n - 1, 1)
    if phase == "expand":
        return _taken(search, search.trial if better else search.reflection, 0, 0)
    if phase == "worst":
        where = CONTRACT if better else -CONTRACT
        return replace(search, phase="outside" if better else "inside", trial=_along(search, where))
    if better or (verdict == 0 and phase == "outside"):
        return _taken(search, search.trial, n, 0)
    return _shrunk(search)


def _expanding(search: Search) -> Search:
    return replace(search, phase="expand", trial=_along(search, EXPAND))


def _along(search: Search, by: float) -> Point:
    """The point on the way from the worst through the middle of the others, within bounds."""
    *others, worst = search.vertices
    middle = [sum(parts) / len(others) for parts in zip(*others, strict=True)]
    way = zip(middle, worst, strict=True)
    return _within(search, [centre + by * (centre - bad) for centre, bad in way])


def _within(search: Search, point: Point) -> Point:
    bounds = zip(point, search.low, search.high, strict=True)
    return [min(max(part, low), high) for part, low, high in bounds]


def _taken(search: Search, point: Point | None, at: int, floor: int) -> Search:
    """A point in the place of the worst; it is known to be better than those from `at` on."""
    assert point is not None
    kept = search.vertices[:-1]
    search = replace(
        search,
        vertices=[*kept[:at], point, *kept[at:]],
        phase="order",
        at=at,
        floor=floor,
        ordered=len(kept),
    )
    return _placed(search) if at == floor else search


def _moved(search: Search) -> Search:
    """The vertex on its way has passed the one before it."""
    at, vertices = search.at, list(search.vertices)
    vertices[at - 1], vertices[at] = vertices[at], vertices[at - 1]
    search = replace(search, vertices=vertices, at=at - 1)
    return _placed(search) if search.at == search.floor else search


def _placed(search: Search) -> Search:
    """The vertex on its way has its place: on with the next, or with the next step."""
    ordered = search.ordered + 1
    if ordered < len(search.vertices):
        return replace(search, ordered=ordered, at=ordered, floor=0)
    search = replace(search, ordered=ordered)
    if _size(search) <= search.small:
        return _ended(search)
    return replace(search, phase="reflect", reflection=_along(search, REFLECT), trial=None)


def _shrunk(search: Search) -> Search:
    """Every vertex moves towards the best, and all are to be put in order."""
    best = search.best
    moved = [
        [good + SHRINK * (part - good) for good, part in zip(best, vertex, strict=True)]
        for vertex in search.vertices
    ]
    return replace(search, vertices=moved, phase="order", at=1, floor=0, ordered=1)


def _size(search: Search) -> float:
    """The distance of the furthest vertex from the best, in first steps."""
    return max(
        abs(part - good) / abs(step)
        for vertex in search.vertices
        for part, good, step in zip(vertex, search.best, search.steps, strict=True)
    )


def _ended(search: Search) -> Search:
    """The end of a round: the next begins around the best, the other way, with half the steps."""
    rounds = search.rounds - 1
    if rounds == 0:
        return replace(search, rounds=0, finished=True)
    steps = [-step * SHRINK for step in search.steps]
    search = replace(search, rounds=rounds, steps=steps, small=search.small / SHRINK)
    vertices = _simplex(search, search.best)
    return replace(search, vertices=vertices, phase="order", at=1, floor=0, ordered=1)


def _simplex(search: Search, start: Point) -> list[Point]:
    """The start, and a step from it along each axis; the other way where a bound is near."""
    vertices = [_within(search, start)]
    for axis, step in enumerate(search.steps):
        moved = list(vertices[0])
        moved[axis] += step
        if not search.low[axis] <= moved[axis] <= search.high[axis]:
            moved[axis] -= 2 * step
        vertices.append(_within(search, moved))
    return vertices
