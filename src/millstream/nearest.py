"""The nearest right word, for errors that name a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` when one of the known words is near, else what there is.

    >>> did_you_mean("subscibes", ["publishes", "subscribes"])
    "did you mean 'subscribes'?"
    >>> did_you_mean("x", ["publishes", "subscribes"])
    'there are: publishes, subscribes'
    """
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1)
    if not near:
        lowered = {one.lower(): one for one in words}
        near = [lowered[one] for one in difflib.get_close_matches(word.lower(), lowered, n=1)]
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are: {', '.join(words) or 'none'}"
