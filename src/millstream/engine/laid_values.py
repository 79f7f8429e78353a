"""The values of deliveries as columns of whole numbers.

A source's lines of one layout (`columnar.line_layout`) consist of the key, the time and other
whole numbers, as do the partials of counts and sums. Key and time of a delivery are columns
anyway. So the other numbers are all that must travel, and the values are made of them again if
anyone asks for their bytes. If lines have texts besides the key, their bytes travel too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.columnar.arrow_arrays import Integers
from millstream.columnar.line_layout import LineLayout


class ValueForm(NamedTuple):
    """Where the parts of a line are."""

    layout: LineLayout
    key: int | None = None
    """The field that is the key; None if there is none."""
    ts: int | None = None
    """The field that is the time."""
    scale: int = 1
    """The microseconds of its unit."""

    @property
    def numbers(self) -> list[int]:
        """The fields that are numbers, except the time."""
        texts = self.layout.texts
        return [at for at, is_text in enumerate(texts) if not is_text and at != self.ts]

    @property
    def whole(self) -> bool:
        """True if values can be made again."""
        return all(at == self.key for at, is_text in enumerate(self.layout.texts) if is_text)


class LaidValues(NamedTuple):
    """The values of deliveries, in one form."""

    form: ValueForm
    numbers: tuple[Integers, ...]
    """A column for each of the form's numbers."""

    def number(self, name: str, times: Integers) -> Integers | None:
        """Returns the numbers in a field; None if it does not hold whole numbers."""
        form, names = self.form, self.form.layout.names
        at = names.index(name) if name in names else None
        if at is None or form.layout.texts[at]:
            return None
        return times // form.scale if at == form.ts else self.numbers[form.numbers.index(at)]

    def values(self, times: Integers, keys: pa.Array) -> pa.Array:
        """Returns the values as they came, as an array of large_binary; the form must be whole."""
        form, numbers = self.form, iter(self.numbers)
        columns: list[Any] = []
        for at, is_text in enumerate(form.layout.texts):
            if at == form.ts:
                columns.append(times if form.scale == 1 else times // form.scale)
            else:
                columns.append(keys if is_text else next(numbers))
        return form.layout.lines(columns)

    def decoded(self, times: list[int], keys: Iterable[str]) -> list[Any]:
        """Returns the values as a JSON decoder does, new ones at each call; the form must be
        whole."""
        form, numbers = self.form, iter(self.numbers)
        columns: list[Iterable[Any]] = []
        for at, is_text in enumerate(form.layout.texts):
            if at == form.ts:
                scale = form.scale
                columns.append(times if scale == 1 else [time // scale for time in times])
            else:
                columns.append(keys if is_text else next(numbers).tolist())
        return _maker(form.layout.names)(zip(*columns, strict=False))

    def pick(self, order: slice | NDArray[Any]) -> LaidValues:
        """Returns the values at these indices."""
        return LaidValues(self.form, tuple(column[order] for column in self.numbers))


@lru_cache(maxsize=64)
def _maker(names: tuple[str, ...]) -> Callable[[Iterable[tuple[Any, ...]]], list[Any]]:
    """Returns a function that makes a dict with these keys of each row.

    Its code names the keys, as that of a dataclass names its fields: `dict(zip(names, row))` takes
    three times as long.
    """
    variables = [f"v{number}" for number in range(len(names))]
    items = ", ".join(f"{name!r}: {v}" for name, v in zip(names, variables, strict=True))
    code = f"lambda rows: [{{{items}}} for {', '.join(variables)}, in rows]"
    made: Callable[[Iterable[tuple[Any, ...]]], list[Any]] = eval(code)
    return made


def number_form(name: str) -> ValueForm:
    """Returns the form of values that have one field, with a whole number.

    >>> number_form("sum").layout.pieces
    (b'{"sum":', b'}')
    """
    return ValueForm(LineLayout((name,), (False,), (b'{"%s":' % name.encode(), b"}")))


def in_turn(parts: list[LaidValues | None]) -> LaidValues | None:
    """Returns values one after the other; None if they do not all have one form."""
    first = parts[0]
    if first is None or any(part is None or part.form != first.form for part in parts):
        return None
    columns = zip(*(part.numbers for part in parts if part is not None), strict=True)
    return LaidValues(first.form, tuple(map(np.concatenate, columns)))
