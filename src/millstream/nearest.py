"""Finds the nearest known word, for errors about an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that is nearest, or None; case is ignored if no word is near with it.

    >>> nearest("Subscibes", ["publishes", "subscribes"])
    'subscribes'
    """
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1)
    if near:
        return near[0]
    lowered = {known_word.lower(): known_word for known_word in words}
    near = difflib.get_close_matches(word.lower(), lowered, n=1)
    return lowered[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns `did you mean 'x'?` if one of the known words is near, else the list of all.

    >>> did_you_mean("subscibes", ["publishes", "subscribes"])
    "did you mean 'subscribes'?"
    >>> did_you_mean("x", ["publishes", "subscribes"])
    'there are: publishes, subscribes'
    """
    words = list(known)
    near = nearest(word, words)
    return f"there are: {', '.join(words) or 'none'}" if near is None else f"did you mean {near!r}?"
