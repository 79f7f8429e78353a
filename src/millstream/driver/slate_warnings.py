"""Warnings about slates that need attention: each given once, and again if it gets worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from millstream.model.size import shown_size
from millstream.stores.function_counts import FunctionCounts

KEYS = 10
"""The most keys of one update to warn about: by then the application's owner knows."""


class LargeSlates:
    """Warns once about each slate over `slate_warn`, and again when it has doubled.

    A run has one such object.
    """

    def __init__(self, warn: int, kinds: Mapping[str, str]) -> None:
        """`warn` is the workflow's `slate_warn`; `kinds` has each update's kind of slate."""
        self._warn = warn
        self._kinds = kinds
        self._said: dict[str, dict[str, int]] = {}

    def sentences(self, functions: Mapping[str, FunctionCounts], batch: int) -> Iterator[str]:
        """Yields warnings about the slates that are large after a batch."""
        for update, counts in functions.items():
            slate = counts.large
            if slate is None:
                continue
            reported = self._said.setdefault(update, {})
            known = reported.get(slate.key)
            if slate.batch != batch or (known is None and len(reported) >= KEYS):
                continue
            if known is None or slate.bytes >= 2 * known:
                reported[slate.key] = slate.bytes
                subject, advice = "its slate", "keep less in it, or use a table"
                if self._kinds.get(update) == "table":
                    subject, advice = "an entry of its table", "use more entries, each with less"
                yield (
                    f"update {update!r}, key {slate.key!r}: {subject} has "
                    f"{shown_size(slate.bytes)}, over slate_warn ({shown_size(self._warn)}); "
                    f"{advice}"
                )


class UnrankedSlates:
    """Warns once for each update about slates whose priority could not be determined.

    A run has one such object.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()

    def sentences(self, functions: Mapping[str, FunctionCounts], batch: int) -> Iterator[str]:
        """Yields warnings about the slates that got no priority in a batch."""
        for update, counts in functions.items():
            slate = counts.unranked
            if slate is not None and slate.batch == batch and update not in self._said:
                self._said.add(update)
                yield (
                    f"update {update!r}, key {slate.key!r}: its priority could not be computed "
                    f"({slate.error}); slates without a priority are evicted first: let priority "
                    "return a finite number for every key and slate"
                )
