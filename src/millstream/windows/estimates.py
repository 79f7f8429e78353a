"""Answers with bounds: what a window would say if nothing had been lost.

A bound is JSON: `{"value", "low", "high", "confidence", "method", "final"}`. `value` is the
estimate for the whole window (the answer itself has only what came), the truth is between `low` and
`high` with the confidence; null: nothing can be said. If it is not `final`, that is the truth of
what was known when it was said: where records say themselves when they were, one may come after its
window was closed. Such a window is answered again while it is corrected (`Job.corrections`); after
that the record is counted as late, and changes no answer. The method is

- `exact`: nothing is missing, and nothing more can come;
- `on time`: nothing is missing of what came in time;
- `sampled`: what is missing was left out at random. `strata` says which panes are a fair sample of
  which, `sampling` how a total and its variance come of it; the interval is t with Satterthwaite's
  degrees of freedom. A mean or a ratio is one of two totals, linearised;
- `worst case`: some is missing for a reason that may have to do with what it holds. Each record of
  it may have added the least or the most that the job says (`Job.most`); where their number or that
  bound is not known, null. Without a `most`, sums are taken to be of numbers that are not negative,
  unless one was seen.

Counts and sums are never outside what is certain: what came, and what came with the most that the
missing records can add. A key that is in few drawn panes is no case for t: its upper bound is at
least that of `rare`, which holds whatever its distribution. Records that came too late for their
pane count as lost. Dead letters have no value and are not missing, but for those whose own time was
not believed (`Manifest.misdated`): nobody knows when they were, and they count as lost where the
log was when they were read.

Where nothing is known of some panes, of a node that never came or of bytes that are gone, an upper
bound is null. Then a bound also has `known`: `{"low", "high", "panes", "of"}`, between which the
truth is of all records that the nodes are known to have had, in so many panes of nodes of so many.
With nine nodes of ten it is the bound of the nine.

Under `Error` every interval allows for all moments at which the window could have been closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

from millstream.windows.fidelity import LOOKS, Error
from millstream.windows.job import Job
from millstream.windows.kinds import buckets_of, number_of, pair_of
from millstream.windows.message import Manifest
from millstream.windows.rare import Rare
from millstream.windows.sampling import Drawn, Sampling
from millstream.windows.strata import Layout, Unit, layout
from millstream.windows.tails import two_sided

FEW = 10
"""A key that is in fewer drawn panes, and not in all of them, is rare."""
Values = Mapping[Unit, float]
Bound = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The bounds of a window."""

    keys: dict[str, Bound]
    """By key. Of a histogram it is its count's, with `buckets`: a list of bounds, each with its
    `bucket`."""
    total: Bound
    """Over all keys; `panes` says how many were received, were left out at random, were lost
    otherwise, and of how many of those nothing is known."""
    unseen: Bound
    """Of a key that is in no received pane: how much of it there may be."""


def estimate(
    job: Job,
    nodes: Sequence[str],
    panes: range,
    manifests: Mapping[Unit, Manifest],
    values: Mapping[str, Mapping[Unit, Any]],
    *,
    final: bool = True,
    late: int = 0,
) -> Estimate:
    """The bounds of a window's answers. `final`: nothing of the window can come late. `late`:
    records that were too late for panes that nobody has told of.

    `manifests`: what the nodes have told of its panes, by node and pane; `values`: by key what
    `combine` has made, as it is in the messages, by node and pane. With several reducers the keys,
    and so the total, are those of one.
    """
    known = layout(job, nodes, panes, manifests, late)
    found = _Bounding(job, known, manifests, final).of(values)
    if known.unknown:
        counted = replace(known, lost_records=known.counted, unknown=0)
        units = len(nodes) * len(panes)
        _add_known(found, _Bounding(job, counted, manifests, final).of(values), known, units)
    return found


def _add_known(found: Estimate, told: Estimate, known: Layout, units: int) -> None:
    """Put into bounds what they are over the panes of which something is known."""
    pairs = [(found.total, told.total), (found.unseen, told.unseen)]
    for key, bound in found.keys.items():
        pairs.append((bound, told.keys[key]))
        pairs += zip(bound.get("buckets", ()), told.keys[key].get("buckets", ()), strict=True)
    for bound, other in pairs:
        bound["known"] = {
            "low": other["low"],
            "high": other["high"],
            "panes": units - known.unknown,
            "of": units,
        }


class _Bounding:
    """A window, made ready for the bounds of many keys."""

    def __init__(
        self, job: Job, known: Layout, manifests: Mapping[Unit, Manifest], final: bool
    ) -> None:
        self.job, self.known, self.manifests, self.final = job, known, manifests, final
        error = job.fidelity if isinstance(job.fidelity, Error) else None
        self.confidence = job.confidence if error is None else error.confidence
        chances = 1 if error is None else LOOKS + (job.latency is not None)
        self.chance = (1 - self.confidence) / chances
        self.sampling = Sampling(known.strata)
        self.rare = Rare(known.strata, known.received, manifests)
        self.sampled = frozenset(unit for one in known.strata for unit in one.units)
        """Where the sample speaks: received panes among them are not counted again."""
        self.lost = known.lost_records

    def of(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        if self.job.kind in ("mean", "ratio"):
            return self.of_ratios(values)
        if self.job.kind == "histogram":
            return self.of_histograms(values)
        return self.of_numbers(values)

    def of_numbers(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        numbers = {
            key: {unit: number_of(self.job, one) for unit, one in of.items()}
            for key, of in values.items()
        }
        keys = {key: self._number(of) for key, of in numbers.items()}
        return Estimate(keys, self._with_panes(self._number(_added(numbers))), self._unseen())

    def of_histograms(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        keys: dict[str, Bound] = {}
        counts: dict[str, dict[Unit, float]] = {}
        for key, of in values.items():
            labels, buckets = buckets_of(self.job, of)
            counts[key] = {unit: sum(of_unit.values()) for unit, of_unit in buckets.items()}
            keys[key] = self._number(counts[key])
            keys[key]["buckets"] = [
                {
                    "bucket": label,
                    **self._number({unit: one.get(at, 0) for unit, one in buckets.items()}),
                }
                for at, label in enumerate(labels)
            ]
        return Estimate(keys, self._with_panes(self._number(_added(counts))), self._unseen())

    def of_ratios(self, values: Mapping[str, Mapping[Unit, Any]]) -> Estimate:
        pairs = {
            key: {unit: pair_of(self.job, one) for unit, one in of.items()}
            for key, of in values.items()
        }
        above = _added({key: {u: p[0] for u, p in of.items()} for key, of in pairs.items()})
        below = _added({key: {u: p[1] for u, p in of.items()} for key, of in pairs.items()})
        keys = {
            key: self._ratio({u: p[0] for u, p in of.items()}, {u: p[1] for u, p in of.items()})
            for key, of in pairs.items()
        }
        low, high = self.job.per_record or (None, None)
        whole = self.known.complete
        unseen = self._bound(None, None if whole else low, None if whole else high)
        return Estimate(keys, self._with_panes(self._ratio(above, below)), unseen)

    def _number(self, values: Values) -> Bound:
        """The bound of a count, of a sum, or of one bucket."""
        here = sum(values.values())
        if self.known.complete:
            return self._bound(here, here, here)
        drawn = self.sampling.total(values)
        apart = sum(one for unit, one in values.items() if unit not in self.sampled)
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
            high = highest  # what came is more than the sample allows for: it tells nothing
        return self._bound(value, low, high)

    def _certain(
        self, here: float, least: float | None, most: float | None
    ) -> tuple[float | None, float | None]:
        """Between what a count or a sum is whatever the sample says; None: not known."""
        low = here if least is not None and least >= 0 else None
        if self.rare.missing_records is None or self.lost is None:
            return low, None
        hidden = self.rare.missing_records + self.lost
        if low is None and least is not None:
            low = here + least * hidden
        return low, None if most is None else here + max(0, most) * hidden

    def _ratio(self, above: Values, below: Values) -> Bound:
        """The bound of a mean, or of a ratio."""
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
        parts = {unit: (above.get(unit, 0) - ratio * of) / bottom for unit, of in below.items()}
        linear, freedom = self.sampling.total(parts), drawn.seen - 1
        low: float | None = None
        high: float | None = None
        if not self.known.strata:
            low = high = ratio
        elif freedom >= 1:  # panes without the key say nothing of its mean
            wide = self._width(linear, min(linear.freedom, freedom))
            low, high = ratio - wide, ratio + wide
        return self._bound(ratio, *self._ratio_with_lost(low, high, bottom))

    def _ratio_with_lost(
        self, low: float | None, high: float | None, bottom: float
    ) -> tuple[float | None, float | None]:
        """A mean moves towards that of the lost records, by no more than their part of all."""
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
        """What was lost not at random may hold the least or the most."""
        if self.lost == 0:
            return low, high
        if self.lost is None:
            return (low if least is not None and least >= 0 else None), None
        down = None if least is None or low is None else low + min(0, least) * self.lost
        return down, None if most is None or high is None else high + max(0, most) * self.lost

    def _per_record(self, values: Values) -> tuple[float | None, float | None]:
        """The least and the most that a record adds; None where it is not known, or where what came
        shows that it is not so."""
        if self.job.per_record is None:
            return (None if any(one < 0 for one in values.values()) else 0), None
        least, most = self.job.per_record
        sizes = self._sizes(values)
        held = all(one <= max(0, most) * records for one, records in sizes)
        above = all(one >= min(0, least) * records for one, records in sizes)
        return (least if above else None), (most if held else None)

    def _sizes(self, values: Values) -> list[tuple[float, int]]:
        """Values, and of how many records each is. Where nodes need not be told apart a parent may
        have merged theirs: then of whole panes."""
        if self.job.apart:
            return [(one, self.manifests[unit]["records"]) for unit, one in values.items()]
        found = defaultdict[int, float](float)
        for (_, pane), one in values.items():
            found[pane] += one
        return [(one, self._records[pane]) for pane, one in found.items()]

    @cached_property
    def _records(self) -> Mapping[int, int]:
        """By pane, of all nodes."""
        records = defaultdict[int, int](int)
        for (_, pane), told in self.manifests.items():
            records[pane] += told["records"]
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
        certain = not self.known.strata
        return {
            "value": value,
            "low": low,
            "high": high,
            "confidence": 1.0 if certain else self.confidence,
            "method": method,
            "final": self.final,
        }

    def _with_panes(self, bound: Bound) -> Bound:
        known = self.known
        bound["panes"] = {
            "received": len(known.received),
            "left_out": sum(len(one.missing) for one in known.strata),
            "lost": known.lost,
            "unknown": known.unknown,
        }
        return bound


def _added(values: Mapping[str, Values]) -> dict[Unit, float]:
    """Over all keys, by pane."""
    total: dict[Unit, float] = {}
    for of in values.values():
        for unit, value in of.items():
            total[unit] = total.get(unit, 0) + value
    return total
