"""The answers of a job brought together by window, for what is worked out over all keys.

A job answers for each key by itself. A share of a total, or a comparison of keys, needs all keys of
a window: `by_window` is a map over a job's two outputs that gives each answer its window as key,
and, after all of them, the window's own event. An update over it adds the answers up and speaks
when `is_over` says so.

    app.map("words", "words.windows", publishes="words.by_window")(by_window)
    app.update("words.by_window", publishes="shares")(shares)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import millstream as ms


def by_window(event: ms.Event) -> Iterator[Any]:
    """`{"key": KEY, "answer": ANSWER}` for each key of a window, then `{"over": WINDOW}`."""
    window = str(event.value["from"])
    if event.stream.endswith(".windows"):
        # A microsecond after the answers, which come from the root with the same time.
        yield ms.emit(key=window, value={"over": event.value}, ts=event.ts + 2)
    else:
        yield ms.emit(key=window, value={"key": event.key, "answer": event.value["value"]})


def is_over(window: dict[str, Any], answered: int) -> bool:
    """True if a window's event is the last one of its reducers; `answered` is
    the number that have come so far.

    >>> is_over({"reducer": "3/0"}, 1), is_over({"reducer": "3/2"}, 3)
    (False, True)
    """
    reducers, slash, _ = str(window["reducer"]).partition("/")
    return answered >= (int(reducers) if slash else 1)


def bounds(window: dict[str, Any]) -> dict[str, Any]:
    """Returns a window's range, its reason for closing and its coverage."""
    return {name: window[name] for name in ("from", "to", "why", "coverage")}
