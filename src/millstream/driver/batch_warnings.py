"""What a run says about its batches: everything that can warn, each warning given once.

A warning about slates is given again if it gets worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millstream.engine.progress import Report
from millstream.model.size import shown_size
from millstream.model.source import Source, unit_doubt
from millstream.model.workflow import Workflow
from millstream.stores.function_counts import FunctionCounts
from millstream.stores.progress import Progress

NEARLY_ALL = 0.9
ENOUGH = 100
"""The fewest deliveries of a batch for which a run that continues shows a warning."""
KEYS = 10
"""The most keys of one update to warn about: by then the application's owner knows."""


class BatchWarnings:
    """The warnings of a run, after each of its batches."""

    def __init__(self, workflow: Workflow) -> None:
        self._large = LargeSlates(workflow.slate_warn, workflow.slate_kinds)
        self._unranked = UnrankedSlates()
        self.dead_input = DeadInput()
        self._units = UnitDoubts(workflow.sources)

    def note(self, reports: Sequence[Report]) -> None:
        """Takes the reports of a batch's tasks."""
        self.dead_input.note(reports)

    def sentences(self, before: Progress, after: Progress) -> Iterator[str]:
        yield from self.dead_input.sentences(before, after)
        yield from self._units.sentences(after)
        yield from self._large.sentences(after.functions, after.batch)
        yield from self._unranked.sentences(after.functions, after.batch)


class UnitDoubts:
    """Warns once for each source whose times are likely to have another unit than declared, by the
    greatest time that it has brought.

    Milliseconds that are taken for seconds are far after the clock, so they are dead letters that
    say so. Seconds that are taken for milliseconds are times of 1970, which could be meant.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._said: set[str] = set()

    def sentences(self, after: Progress) -> Iterator[str]:
        for source in self._sources:
            seen = after.sources.get(source.name)
            if seen is None or seen.highest is None or source.name in self._said:
                continue
            doubt = unit_doubt(source.unit, seen.highest, after.clock)
            if doubt is not None:
                self._said.add(source.name)
                yield f"source {source.name!r}: {doubt}"


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


def dead_share(before: Progress, after: Progress) -> tuple[int, int]:
    """Counts the deliveries between two commits: those that became dead letters, and all."""
    old, new = before.total(), after.total()
    owed = new.taken + new.retried - old.taken - old.retried
    return new.dead_letters - old.dead_letters, owed


def dead_sentence(dead: int, owed: int, error: str, *, retriable: bool = True) -> str | None:
    """Returns a warning if nearly all became dead letters; `error` is the error of one of them.

    >>> dead_sentence(1, 2, "KeyError: 'user'")
    >>> dead_sentence(9, 10, "KeyError: 'user'")
    "9 of 10 deliveries became dead letters, such as: KeyError: 'user'; mend the application or \
the input, then retry the letters with `millstream deadletters retry`"
    >>> dead_sentence(1, 1, "the file must be whole", retriable=False)
    '1 of 1 deliveries became dead letters, such as: the file must be whole; mend the application \
or the input; such a letter cannot be retried'
    """
    if not owed or dead < NEARLY_ALL * owed:
        return None
    such = f", such as: {error}" if error else ""
    then = ", then retry the letters with `millstream deadletters retry`"
    return (
        f"{dead:,} of {owed:,} deliveries became dead letters{such}; mend the application or "
        f"the input{then if retriable else '; such a letter cannot be retried'}"
    )


class DeadInput:
    """Warns once that nearly all of a batch became dead letters, and again after a good batch.

    A record whose time has another unit than its source says is rightly a dead letter. But if every
    record is one, the run must not end as if it had succeeded.
    """

    def __init__(self) -> None:
        self._said = False
        self._error, self._retriable = "", True

    def note(self, reports: Sequence[Report]) -> None:
        """Takes the error of a dead letter from the reports of a batch."""
        for report in reports:
            if report.error:
                self._error, self._retriable = report.error, report.retriable
                return

    def sentence(self, before: Progress, after: Progress) -> str | None:
        """Returns the warning about all that came between two commits, if there is one."""
        dead, owed = dead_share(before, after)
        return dead_sentence(dead, owed, self._error, retriable=self._retriable)

    def sentences(self, before: Progress, after: Progress) -> Iterator[str]:
        """Yields the warning about a batch."""
        owed = dead_share(before, after)[1]
        sentence = self.sentence(before, after) if owed >= ENOUGH else None
        if sentence is not None and not self._said:
            yield f"batch {after.batch}: {sentence}"
        if owed:
            self._said = sentence is not None
