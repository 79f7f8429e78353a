"""Names of objects with output that is too large for a commit; kept until the sinks have it."""

from __future__ import annotations


def staged_name(file: str) -> str:
    """The object's name for a staged file, whose name starts with the number of its batch.

    >>> staged_name("000000000123-ab12.rows")
    'staged/000000000123/ab12.rows'
    """
    batch, _, rest = file.partition("-")
    return f"staged/{batch}/{rest}"
