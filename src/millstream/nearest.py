"""The nearest right word, for errors that name a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, if any is near; capitals count only between near ones.

    >>> nearest("Subscibes", ["publishes", "subscribes"])
    'subscribes'
    """
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1)
    if near:
        return near[0]
    lowered = {one.lower(): one for one in words}
    near = difflib.get_close_matches(word.lower(), lowered, n=1)
    return lowered[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` when one of the known words is near, else what there is.

    >>> did_you_mean("subscibes", ["publishes", "subscribes"])
    "did you mean 'subscribes'?"
    >>> did_you_mean("x", ["publishes", "subscribes"])
    'there are: publishes, subscribes'
    """
    words = list(known)
    near = nearest(word, words)
    return f"there are: {', '.join(words) or 'none'}" if near is None else f"did you mean {near!r}?"
