"""Ranges, slides and panes on one axis (iMR, section 2.3).

A window is `[w * slide, w * slide + range)` on an axis: event time in microseconds, a node's count
of records or of bytes, or a number that the records carry. It is made of *panes*, pieces of equal
size that divide both the range and the slide. So the result for a pane is used by every window that
has the pane.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import gcd
from typing import Any, Literal, get_args

from millstream.errors import DefinitionError
from millstream.model.duration import instant, microseconds, shown_duration
from millstream.model.size import byte_count

Axis = Literal["time", "records", "bytes", "sequence"]
AXES: tuple[Axis, ...] = get_args(Axis)
FURTHEST = 1 << 60
"""The farthest position on the axis, on either side of zero: 36,000 years of time. Timers cannot be
set beyond it."""
LEAST_TIME = 1_000
"""The shortest pane of time, in microseconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """Defines the windows: their sizes on the axis, where the first begins and the last ends."""

    axis: Axis
    length: int
    """The range of a window."""
    slide: int
    pane: int
    begin: int | None = None
    extent: int | None = None

    @property
    def text(self) -> str:
        """Axis, pane, slide and range. Jobs with the same text have the same panes and windows.

        >>> Span("records", length=30, slide=20, pane=10).text
        'records/10/20/30'
        """
        return f"{self.axis}/{self.pane}/{self.slide}/{self.length}"

    @property
    def words(self) -> str:
        """A description of the windows, for messages.

        >>> Span("time", length=60_000_000, slide=20_000_000, pane=10_000_000).words
        'windows of 1m every 20s in panes of 10s of time'
        """
        sizes = [_worded(self.axis, str(size)) for size in (self.length, self.slide, self.pane)]
        return f"windows of {sizes[0]} every {sizes[1]} in panes of {sizes[2]} of {self.axis}"

    @property
    def panes(self) -> int:
        """The number of panes in a window."""
        return self.length // self.pane

    @property
    def furthest(self) -> int:
        """The last pane that a message may name, on either side of zero. A log that ends at the
        lowest one, `-furthest`, has ended without a record."""
        return FURTHEST // self.pane

    def pane_of(self, position: int) -> int:
        """Returns the pane of a position."""
        return position // self.pane

    def panes_of(self, window: int) -> range:
        """Returns the panes of a window."""
        first = window * self.slide // self.pane
        return range(first, first + self.panes)

    def windows_of(self, pane: int) -> range:
        """Returns the windows that have a pane.

        >>> span = Span("records", length=30, slide=20, pane=10)
        >>> [list(span.windows_of(pane)) for pane in (2, 3, 4)]
        [[0, 1], [1], [1, 2]]
        """
        step = self.slide // self.pane
        first = -(-(pane - self.panes + 1) // step)
        return range(first, pane // step + 1)

    def bounds(self, window: int) -> tuple[int, int]:
        """Returns the beginning and the end of a window. The end is not part of it."""
        return window * self.slide, window * self.slide + self.length

    def takes(self, position: int) -> bool:
        """True if a position is between the beginning and the end of the job."""
        begin = self.begin if self.begin is not None else position
        return begin <= position and (self.extent is None or position < begin + self.extent)


def difference(mine: str, other: str) -> tuple[str, str]:
    """Describes how two spans, given as `Span.text`, differ: in their panes or, if these are equal,
    in their windows.

    >>> difference("time/10000000/10000000/10000000", "time/5000000/5000000/5000000")
    ('panes of 10s of time', 'of 5s')
    >>> difference("bytes/5/5/10", "bytes/5/10/10")
    ('windows of 10 every 5 of bytes', 'of 10 every 10')
    """
    mine_fields, other_fields = mine.split("/"), other.split("/")
    if mine_fields[:2] != other_fields[:2]:
        words = [f"of {_worded(fields[0], fields[1])}" for fields in (mine_fields, other_fields)]
        kind = "panes"
    else:
        words = [
            f"of {_worded(fields[0], fields[3])} every {_worded(fields[0], fields[2])}"
            for fields in (mine_fields, other_fields)
        ]
        kind = "windows"
    axis = "" if mine_fields[0] == other_fields[0] else f" of {other_fields[0]}"
    return f"{kind} {words[0]} of {mine_fields[0]}", f"{words[1]}{axis}"


def _worded(axis: str, size: str) -> str:
    """Formats a size on the axis as an application would write it."""
    return shown_duration(int(size)) if axis == "time" else size


def span_of(
    axis: object, range: object, slide: object, pane: object, begin: object, extent: object
) -> Span:
    """Builds the span of a job. Raises DefinitionError if its parts do not fit together."""
    if axis not in AXES:
        raise DefinitionError(f"job: by must be one of {', '.join(AXES)}; got {axis!r}")
    length = _size(axis, range, "range")
    step = length if slide is None else _size(axis, slide, "slide")
    if step > length:
        raise DefinitionError(
            f"job: slide must be no longer than the range, {range!r}: otherwise records between "
            f"two windows would be in no window; got {slide!r}"
        )
    common = gcd(length, step)
    size = common if pane is None else _size(axis, pane, "pane")
    if length % size or step % size:
        raise DefinitionError(
            f"job: pane must divide the range and the slide, {range!r} and {slide!r}; "
            f"got {pane!r}; the greatest that does is {common}"
        )
    if axis == "time" and size < LEAST_TIME:
        raise DefinitionError(
            f"job: pane must be 1ms or more, since the panes themselves take some microseconds to "
            f"come; got {pane or common!r}"
        )
    start = None if begin is None else _position(axis, begin)
    if extent is not None and start is None:
        raise DefinitionError("job: begin must say where the extent begins")
    return Span(
        axis,
        length,
        step,
        size,
        begin=start,
        extent=None if extent is None else _size(axis, extent, "extent"),
    )


def _size(axis: object, value: Any, option: str) -> int:
    where = f"job: {option}"
    if axis == "time":
        size = microseconds(value, where)
    elif axis == "bytes":
        size = byte_count(value, where)
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        raise DefinitionError(f"{where} must be a whole number of {axis}; got {value!r}")
    if size < 1:
        raise DefinitionError(f"{where} must be over 0; got {value!r}")
    return size


def _position(axis: object, value: Any) -> int:
    if axis == "time" and isinstance(value, datetime):
        return instant(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    expected = "a datetime or microseconds" if axis == "time" else f"a number of {axis}"
    raise DefinitionError(f"job: begin must be {expected}; got {value!r}")
