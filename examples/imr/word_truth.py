"""The expected result of examples/skewed_words.py, and its errors on incomplete data (iMR, Figure
9).

- *Count error* of a word: |found - true| / true. A word that was not found is off by 1.
- *Frequency error* of a word: the same of its share in all words of the window. If half of all
  records are missing evenly, counts are off by a half and shares are right.

Both are means over all words that are truly in the window; the paper also draws the standard
deviation of the frequency error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from examples.imr.incomplete import Cell, Panes, answers
from millstream.windows.job import Job


@dataclass(frozen=True, slots=True)
class WordErrors:
    """The errors of a window."""

    count: float
    frequency: float
    deviation: float
    """The standard deviation of the frequency errors."""
    words_found: float
    """The part of the words that were found at all."""


def true_counts(logs: Mapping[str, Sequence[Mapping[str, Any]]], size: int) -> list[Counter[str]]:
    """The words of each window of so many records of each node, that all nodes have whole."""
    windows = min(len(log) for log in logs.values()) // size
    return [
        Counter(
            word
            for log in logs.values()
            for record in log[window * size : (window + 1) * size]
            for word in record["line"].split()
        )
        for window in range(windows)
    ]


def errors(true: Mapping[str, int], answered: Mapping[str, int]) -> WordErrors:
    """The errors of what was found.

    >>> errors({"a": 4, "b": 4}, {"a": 2, "b": 2})
    WordErrors(count=0.5, frequency=0.0, deviation=0.0, words_found=1.0)
    >>> errors({"a": 4, "b": 4}, {"a": 4})
    WordErrors(count=0.5, frequency=1.0, deviation=0.0, words_found=0.5)
    """
    all_true, all_found = sum(true.values()), sum(answered.values()) or 1
    of_counts = [abs(answered.get(word, 0) - count) / count for word, count in true.items()]
    of_shares = [
        abs(answered.get(word, 0) / all_found - count / all_true) / (count / all_true)
        for word, count in true.items()
    ]
    seen = sum(word in answered for word in true) / len(true)
    return WordErrors(fmean(of_counts), fmean(of_shares), pstdev(of_shares), seen)


def measure(
    job: Job, panes: Panes, all_cells: Collection[Cell], received: Collection[Cell]
) -> WordErrors:
    """The errors of a window of `all_cells` of which only some were received."""
    return errors(answers(job, panes, all_cells), answers(job, panes, received))
