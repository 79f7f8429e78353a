"""The top k: the items with the greatest value, or the most frequent ones.

- `top(k, of, by)` ranks items by a number. An item counts once, with its greatest number. It is
  exact, since an item that is not among the k greatest of a part has k items before it in the
  whole.
- `top(k, of)` ranks items by frequency, with a mergeable summary of Misra and Gries (Agarwal et
  al., *Mergeable summaries*, 2012). It keeps `keep` items. While a key has no more, it is exact.
  Past that, all counts are lowered by the same amount and those at zero are dropped. `short` is the
  sum of these amounts: no count is too low by more than `short`, none is too high, and an item that
  is not kept came at most `short` times. `short` is at most the number of events divided by
  `keep + 1`. Which items are dropped depends on the order of merging, but the bound does not.

Items with equal numbers are ordered by their canonical JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.algebra.extremes import settled
from millstream.algebra.field_picker import (
    Number,
    Of,
    gathering_items,
    gathering_numbers,
    given,
    item_picker,
    item_text,
    number_picker,
)
from millstream.codec import decode_value
from millstream.errors import DefinitionError
from millstream.model.algebra import Algebra

MOST = 10_000
"""The limit of k and of `keep`: a slate is read and written as a whole."""


Best = dict[str, Number]
"""The greatest number of each item."""


def top(k: int, of: Of = None, by: Of = None, keep: int | None = None) -> Algebra:
    """Finds the k items with the greatest `by`, or without it the k most frequent ones.

    `keep` (only without `by`) is the number of items that the summary holds. Default: 8 * k, at
    least 256.
    """
    _whole("k", k)
    if by is not None:
        if keep is not None:
            raise DefinitionError("top(keep=) is for the most frequent items: leave it out with by")
        return _greatest(k, of, by)
    kept = max(256, 8 * k) if keep is None else _whole("keep", keep)
    if kept < k:
        raise DefinitionError(f"top(keep={kept}) must be at least k, which is {k}")
    return _frequent(k, of, kept)


def _whole(name: str, number: Any) -> int:
    if type(number) is not int or not 1 <= number <= MOST:
        raise DefinitionError(f"top({name}=) must be a whole number up to {MOST}; got {number!r}")
    return number


def _greatest(k: int, field: Of, by: Of) -> Algebra:
    pick = item_picker("top", field)
    pick_by = number_picker("top", by)
    pick_all, pick_all_by = gathering_items(field), gathering_numbers(by)

    def put(best: Best, item: str, number: Number) -> None:
        old = best.get(item)
        if old is None or number > old or (number == old and type(number) is int):
            best[item] = number

    def first(best: Best) -> list[tuple[str, Number]]:
        return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:k]

    def merge(a: Best, b: Best) -> Best:
        for item, number in b.items():
            put(a, item, number)
        return dict(first(a)) if len(a) > 2 * k else a  # not at every event: sorting is expensive

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Best]:
        partials: dict[str, Best] = {}
        for key, item, number in zip(keys, pick_all(values), pick_all_by(values)[0], strict=True):
            put(partials.setdefault(key, {}), item, number)
        return partials

    return Algebra(
        name="top",
        zero=dict,
        lift=lambda event: {pick(event): pick_by(event)},
        merge=merge,
        write=lambda best: {"top": [[_item(t), settled(number)] for t, number in first(best)]},
        read=lambda slate: {item_text(item, "top"): number for item, number in slate["top"]},
        gather=gather,
        arguments=given(k=k, of=field, by=by),
    )


@dataclass(slots=True)
class Frequencies:
    """The counts of items. Each is too low by at most `short`."""

    counts: dict[str, int] = field(default_factory=dict)
    count: int = 0
    short: int = 0


def _frequent(k: int, field: Of, keep: int) -> Algebra:
    pick = item_picker("top", field)
    pick_all = gathering_items(field)

    def fitted(summary: Frequencies) -> Frequencies:
        if len(summary.counts) > keep:
            cut = sorted(summary.counts.values(), reverse=True)[keep]
            summary.short += cut
            summary.counts = {item: n - cut for item, n in summary.counts.items() if n > cut}
        return summary

    def merge(a: Frequencies, b: Frequencies) -> Frequencies:
        get = a.counts.get
        for item, n in b.counts.items():
            a.counts[item] = get(item, 0) + n
        a.count += b.count
        a.short += b.short
        return fitted(a)

    def write(summary: Frequencies) -> dict[str, Any]:
        ranked = sorted(summary.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        items = [[_item(text), n] for text, n in ranked]
        low = f"each count is at most {summary.short} too low" if summary.short else "none: exact"
        return {
            "top": items[:k],
            "count": summary.count,
            "error": low,
            "short": summary.short,
            "rest": items[k:],
        }

    def read(slate: dict[str, Any]) -> Frequencies:
        counts = {item_text(item, "top"): n for item, n in slate["top"] + slate["rest"]}
        return Frequencies(counts, slate["count"], slate["short"])

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Frequencies]:
        partials: dict[str, Frequencies] = {}
        for (key, item), n in Counter(zip(keys, pick_all(values), strict=True)).items():
            summary = partials.get(key)
            if summary is None:
                summary = partials[key] = Frequencies()
            summary.counts[item] = n
            summary.count += n
        return {key: fitted(summary) for key, summary in partials.items()}

    return Algebra(
        name="top",
        zero=Frequencies,
        lift=lambda event: Frequencies({pick(event): 1}, 1),
        merge=merge,
        write=write,
        read=read,
        gather=gather,
        arguments=given(k=k, of=field, keep=keep),
        error=f"exact while a key has at most {keep} items; past that each count is too low by at "
        "most what its slate calls short, and which items are kept depends on the order",
    )


def _item(text: str) -> Any:
    return decode_value(text.encode())
