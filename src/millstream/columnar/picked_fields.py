"""The fields of records that are picked where records are read, instead of decoding whole records.

`millstream.sources.picked` picks them, `millstream.engine.intake` makes events of them.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from millstream.columnar.arrow_arrays import Integers
from millstream.columnar.line_layout import LaidLines


class Fields(NamedTuple):
    """What is needed of records, if nothing else needs to be decoded."""

    key: str | None
    """The name of the field with the key."""
    ts: str | None
    """The name of the field with the time."""
    lines: bool = False
    """True if the undecoded lines are needed too."""
    numbers: bool = False
    """True if lines of one layout are best handed on as columns, because of their numbers. The
    undecoded lines are then left out if they can be made again."""
    whole: bool = False
    """True if lines of one layout are best handed on as columns, but only if they can be made again
    of these."""
    only_laid: bool = False
    """True if other lines are best decoded completely."""


class Picked(NamedTuple):
    """Columns of a block; None for what was not requested."""

    keys: pa.Array | None
    """Texts, as large_string."""
    times: Integers | None
    lines: pa.Array | None = None
    """The lines, as an Arrow array of large_binary."""
    laid: LaidLines | None = None
    """The lines as columns, if they have one layout."""

    @property
    def size(self) -> int:
        """The number of lines."""
        column = self.times if self.keys is None else self.keys
        return 0 if column is None else len(column)
