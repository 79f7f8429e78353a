"""Answers with bounds: estimates of what a window would say if nothing had been lost.

A bound is JSON: `{"value", "low", "high", "confidence", "method", "final"}`. `value` is the
estimate for the whole window; the answer itself has only what came. The truth is between `low` and
`high` with the given confidence. null means that no bound is known. A bound that is not `final` is
a bound on what came in time: if records carry their own time, one may come after its window was
closed. Such a bound has no confidence (null), since it is not known how likely that is. If it is
from a sample, `on_time_confidence` is the confidence that it contains the truth about what came in
time.

Once a record of the job has come late, more must be expected: then the upper bound is null, and
`known` bounds what came in time. A window is answered again while it is corrected
(`Job.corrections`). After that a late record is counted and changes no answer.

The method is one of:

- `exact`: nothing is missing, and nothing more can come.
- `on time`: nothing is missing of what came in time.
- `sampled`: all that is missing was left out at random. `strata` finds the panes that are a fair
  sample, and `stratified_sample` computes a total and its variance from them. The interval is t
  with Satterthwaite's degrees of freedom. A mean or a ratio is one of two totals, linearised.
- `worst case`: something is missing for a reason that may be related to its contents. Each missing
  record may have added the least or the most that the job allows (`Job.most`). If the number of
  records or that range is not known, the bound is null. Without a `most`, sums are assumed to be of
  numbers that are not negative, unless a negative one was seen.

Bounds on counts and sums never exceed what is certain: at least what came, at most that plus the
most that the missing records can add. t is not suited to a key that is in few drawn panes: its
upper bound is at least that of `rare_keys`, which holds for any distribution. Records that came too
late for their pane count as lost. Dead letters have no value and are not missing. Dead letters with
an implausible time (`PaneManifest.misdated`) are the exception: their true time is not known, and
they count as lost in the pane that was being made when they were read.

If nothing is known of some panes, because a node never came or bytes are gone, an upper bound is
null, as it is once records come late. Then a bound also has `known`: `{"low", "high", "panes",
"of"}`. It bounds the truth over all records that the nodes are known to have had, in `panes` of the
`of` panes of nodes. If nine nodes of ten have come, it is the bound of the nine.

With `Error`, every interval allows for all moments at which the window could have been closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs

from millstream.messages.answers import Bound, BoundPanes, KnownBound
from millstream.windows.bounds.kinds import buckets_of, number_of, pair_of
from millstream.windows.bounds.rare_keys import Rare
from millstream.windows.bounds.strata import PaneLayout, Unit, layout
from millstream.windows.bounds.stratified_sample import Drawn, Sampling
from millstream.windows.bounds.tails import two_sided
from millstream.windows.fidelity import LOOKS, Error
from millstream.windows.panes.message import PaneManifest

if TYPE_CHECKING:
    from millstream.windows.job import Job

FEW = 10
"""A key is rare if it is in fewer drawn panes than this, and not in all of them."""
Values = Mapping[Unit, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The bounds of a window."""

    keys: dict[str, Bound]
    """The bounds by key. For a histogram it is the bound of its count, with `buckets`: a list of
    bounds, each with its `bucket`."""
    total: Bound
    """The bound over all keys. Its `panes` counts the panes that were received, were left out at
    random or were lost otherwise, and those of which nothing is known."""
    unseen: Bound
    """The bound of a key that is in no received pane."""


def estimate(
    job: Job,
    nodes: Sequence[str],
    panes: range,
    manifests: Mapping[Unit, PaneManifest],
    values: Mapping[str, Mapping[Unit, Any]],
    *,
    final: bool = True,
    late: int = 0,
    tardy: bool = False,
) -> Estimate:
    """Computes the bounds of a window's answers. `final`: nothing of the window can come late.
    `late`: the number of records that were too late for panes without a manifest. `tardy`: records
    of the job have come late, in any window.

    `manifests` are those of the window's panes, by node and pane. `values` are the combined values
    by key, then by node and pane, as they are in the messages. With several reducers the keys, and
    so the total, are those of one reducer.
    """
    known = layout(job, nodes, panes, manifests, late)
    more_expected = tardy and not final
    if more_expected:
        known = replace(known, lost_records=None)
    result = _Bounding(job, known, manifests, final).of(values)
    if known.unknown or more_expected:
        counted = replace(known, lost_records=known.counted, unknown=0)
        over_known = _Bounding(job, counted, manifests, final).of(values)
        units = len(nodes) * len(panes)
        return _with_known(result, over_known, units - known.unknown, units)
    return result


def _with_known(result: Estimate, over_known: Estimate, panes: int, units: int) -> Estimate:
    """Adds to each bound the one over the panes of which something is known: `panes` of `units`."""

    def with_known(bound: Bound, other: Bound) -> Bound:
        buckets = bound.buckets
        if buckets is not UNSET and other.buckets is not UNSET:
            buckets = [*map(with_known, buckets, other.buckets)]
        known = KnownBound(other.low, other.high, panes, units)
        return structs.replace(bound, known=known, buckets=buckets)

    return Estimate(
        {key: with_known(bound, over_known.keys[key]) for key, bound in result.keys.items()},
        with_known(result.total, over_known.total),
        with_known(result.unseen, over_known.unseen),
    )


class _Bounding:
    """A window, prepared for computing the bounds of many keys."""

    def __init__(
        self, job: Job, known: PaneLayout, manifests: Mapping[Unit, PaneManifest], final: bool
    ) -> None:
        self.job, self.known, self.manifests, self.final = job, known, manifests, final
        error = job.fidelity if isinstance(job.fidelity, Error) else None
        self.confidence = job.confidence if error is None else error.confidence
        chances = 1 if error is None else LOOKS + (job.latency is not None)
        self.chance = (1 - self.confidence) / chances
        self.sampling = Sampling(known.strata)
        self.rare = Rare(known.strata, known.received, manifests)
        self.sampled = frozenset(unit for stratum in known.strata for unit in stratum.units)
        """The panes of the strata: the sample stands for them, so received ones are not added
        again."""
        self.lost = known.lost_records

    def of(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        if self.job.kind in ("mean", "ratio"):
            return self.of_ratios(values)
        if self.job.kind == "histogram":
            return self.of_histograms(values)
        return self.of_numbers(values)

    def of_numbers(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        numbers = {
            key: {unit: number_of(self.job, partial) for unit, partial in partials.items()}
            for key, partials in values.items()
        }
        keys = {key: self._number(by_unit) for key, by_unit in numbers.items()}
        return Estimate(keys, self._with_panes(self._number(_added(numbers))), self._unseen())

    def of_histograms(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        keys: dict[str, Bound] = {}
        counts: dict[str, dict[Unit, float]] = {}
        for key, partials in values.items():
            labels, buckets = buckets_of(self.job, partials)
            counts[key] = {unit: sum(bins.values()) for unit, bins in buckets.items()}
            bounds = [
                self._number({unit: bins.get(index, 0) for unit, bins in buckets.items()})
                for index in range(len(labels))
            ]
            keys[key] = structs.replace(
                self._number(counts[key]),
                buckets=[
                    structs.replace(bound, bucket=label)
                    for label, bound in zip(labels, bounds, strict=True)
                ],
            )
        return Estimate(keys, self._with_panes(self._number(_added(counts))), self._unseen())

    def of_ratios(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        pairs = {
            key: {unit: pair_of(self.job, partial) for unit, partial in partials.items()}
            for key, partials in values.items()
        }
        tops = {key: {u: p[0] for u, p in by_unit.items()} for key, by_unit in pairs.items()}
        bottoms = {key: {u: p[1] for u, p in by_unit.items()} for key, by_unit in pairs.items()}
        keys = {key: self._ratio(tops[key], bottoms[key]) for key in pairs}
        low, high = self.job.per_record or (None, None)
        whole = self.known.complete
        unseen = self._bound(None, None if whole else low, None if whole else high)
        return Estimate(keys, self._with_panes(self._ratio(_added(tops), _added(bottoms))), unseen)

    def _number(self, values: Values) -> Bound:
        """Computes the bound of a count, a sum or one bucket."""
        here = sum(values.values())
        if self.known.complete:
            return self._bound(here, here, here)
        drawn = self.sampling.total(values)
        apart = sum(number for unit, number in values.items() if unit not in self.sampled)
        value = apart + drawn.value
        wide = self._width(drawn, drawn.freedom)
        low: float | None = value - wide
        high: float | None = value + wide
        least, most = self._per_record(values)
        if self._is_rare(drawn):
            low = here if least is not None and least >= 0 else low
            high = max(value + wide, here + self.rare.beyond(drawn, values, most, self.chance / 2))
        low, high = self._with_lost(low, high, least, most)
        lowest, highest = self._certain(here, least, most)
        if high is not None and highest is not None:
            high = min(high, highest)
        if low is not None and lowest is not None:
            low = max(low, lowest)
        if low is not None and high is not None and low > high:
            high = highest  # more came than the sample allows for: the sample says nothing
        return self._bound(value, low, high)

    def _certain(
        self, here: float, least: float | None, most: float | None
    ) -> tuple[float | None, float | None]:
        """Returns the limits of a count or a sum that do not depend on the sample. None: not
        known."""
        low = here if least is not None and least >= 0 else None
        if self.rare.missing_records is None or self.lost is None:
            return low, None
        hidden = self.rare.missing_records + self.lost
        if low is None and least is not None:
            low = here + least * hidden
        return low, None if most is None else here + max(0, most) * hidden

    def _ratio(self, above: Values, below: Values) -> Bound:
        """Computes the bound of a mean or a ratio."""
        top, bottom = sum(above.values()), sum(below.values())
        if self.known.complete:
            exact = top / bottom if bottom else None
            return self._bound(exact, exact, exact)
        drawn = self.sampling.total(below)
        bottom = drawn.value + sum(v for unit, v in below.items() if unit not in self.sampled)
        top = self.sampling.total(above).value
        top += sum(v for unit, v in above.items() if unit not in self.sampled)
        least, most = self.job.per_record or (None, None)
        if bottom <= 0:
            return self._bound(None, least, most)
        ratio = top / bottom
        parts = {
            unit: (above.get(unit, 0) - ratio * under) / bottom for unit, under in below.items()
        }
        linear, freedom = self.sampling.total(parts), drawn.seen - 1
        low: float | None = None
        high: float | None = None
        if not self.known.strata:
            low = high = ratio
        elif freedom >= 1:  # panes without the key say nothing about its mean
            wide = self._width(linear, min(linear.freedom, freedom))
            low, high = ratio - wide, ratio + wide
        return self._bound(ratio, *self._ratio_with_lost(low, high, bottom))

    def _ratio_with_lost(
        self, low: float | None, high: float | None, bottom: float
    ) -> tuple[float | None, float | None]:
        """Widens the bound of a mean for lost records, which move it by at most their share of all
        records."""
        if self.known.lost_records == 0:
            return low, high
        if self.job.per_record is None:
            return None, None
        least, most = self.job.per_record
        if low is None or high is None:
            return least, most
        part = 1.0
        if self.job.kind == "mean" and self.lost is not None:
            part = self.lost / (self.lost + bottom)
        return low - part * max(0, low - least), high + part * max(0, most - high)

    def _with_lost(
        self, low: float | None, high: float | None, least: float | None, most: float | None
    ) -> tuple[float | None, float | None]:
        """Widens a bound for records that were not lost at random: each may add the least or the
        most."""
        if self.lost == 0:
            return low, high
        if self.lost is None:
            return (low if least is not None and least >= 0 else None), None
        down = None if least is None or low is None else low + min(0, least) * self.lost
        return down, None if most is None or high is None else high + max(0, most) * self.lost

    def _per_record(self, values: Values) -> tuple[float | None, float | None]:
        """Returns the least and the most that a record adds. None where it is not known, or where
        the values received contradict it."""
        if self.job.per_record is None:
            return (None if any(number < 0 for number in values.values()) else 0), None
        least, most = self.job.per_record
        sizes = self._sizes(values)
        below_most = all(number <= max(0, most) * records for number, records in sizes)
        above_least = all(number >= min(0, least) * records for number, records in sizes)
        return (least if above_least else None), (most if below_most else None)

    def _sizes(self, values: Values) -> list[tuple[float, int]]:
        """Pairs each value with its number of records. If a parent may have merged the values of
        several nodes, these are sums over whole panes."""
        if self.job.apart:
            return [(number, self.manifests[unit].records) for unit, number in values.items()]
        sums = defaultdict[int, float](float)
        for (_, pane), number in values.items():
            sums[pane] += number
        return [(number, self._records[pane]) for pane, number in sums.items()]

    @cached_property
    def _records(self) -> Mapping[int, int]:
        """Records by pane, over all nodes."""
        records = defaultdict[int, int](int)
        for (_, pane), manifest in self.manifests.items():
            records[pane] += manifest.records
        return records

    def _is_rare(self, drawn: Drawn) -> bool:
        return drawn.seen < FEW and drawn.seen < self.sampling.drawn

    def _width(self, drawn: Drawn, freedom: float) -> float:
        if drawn.variance <= 0:
            return 0.0
        return two_sided(1 - self.chance, freedom) * sqrt(drawn.variance)

    def _unseen(self) -> Bound:
        if self.known.complete:
            return self._bound(0, 0, 0)
        least, most = self._per_record({})
        high = None if most is None else most * self.rare.unseen(self.chance)
        low = 0 if least is not None and least >= 0 else None
        return self._bound(0, *self._with_lost(low, high, least, most))

    def _bound(self, value: float | None, low: float | None, high: float | None) -> Bound:
        whole = "exact" if self.final else "on time"
        method = whole if self.known.complete else "sampled"
        if self.lost is None or self.lost > 0:
            method = "worst case"
        if value is not None and low is not None:
            value = max(value, low)
        if value is not None and high is not None:
            value = min(value, high)
        confidence = self.confidence if self.known.strata else 1.0
        breakable = not self.final and high is not None
        return Bound(
            value=value,
            low=low,
            high=high,
            confidence=None if breakable else confidence,
            method=method,
            final=self.final,
            on_time_confidence=confidence if breakable and self.known.strata else UNSET,
        )

    def _with_panes(self, bound: Bound) -> Bound:
        known = self.known
        left_out = sum(len(stratum.missing) for stratum in known.strata)
        panes = BoundPanes(len(known.received), left_out, known.lost, known.unknown)
        return structs.replace(bound, panes=panes)


def _added(values: Mapping[str, Values]) -> dict[Unit, float]:
    """Sums the values over all keys, by pane of a node."""
    total: dict[Unit, float] = {}
    for by_unit in values.values():
        for unit, value in by_unit.items():
            total[unit] = total.get(unit, 0) + value
    return total
