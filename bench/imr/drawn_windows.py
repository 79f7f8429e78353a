"""Windows of which only some panes were drawn, with the truth beside: do the intervals hold?

A window has nodes with their own rate, which rises or falls over the window, and panes that differ
in how many records they have. Keys are skewed across nodes, and come in bursts: the mix of keys,
and how large their values are, differs from pane to pane, so that the records of a pane have much
in common. Only the bounds are tried here; panes are made up as a job would have combined them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import UNSET

from millstream.windows.bounds.estimates import estimate
from millstream.windows.bounds.strata import rounds_done
from millstream.windows.fidelity import Area, Error, rounds
from millstream.windows.job import Job
from millstream.windows.panes.message import PaneManifest, manifest
from millstream.windows.panes.pane_rank import rank

Unit = tuple[str, int]
KEYS = ("home", "search", "help")
"""The last is rare: it is in few panes."""
WEIGHTS = (30, 15, 0.05)
FREQUENT = KEYS[:2]
KINDS = ("count", "sum", "mean", "ratio", "histogram")
NODES, PANES = 10, 20


@dataclass(frozen=True, slots=True)
class Made:
    """A window: the records of each pane, and by key what each pane has of it."""

    panes: range
    units: tuple[Unit, ...]
    records: tuple[int, ...]
    counts: Mapping[str, list[int]]
    sums: Mapping[str, list[float]]
    small: Mapping[str, list[int]]
    """The counts whose value is small: the lower of two buckets."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for node, _ in self.units))


def windows(number: int, seed: int, nodes: int = NODES, panes: int = PANES) -> Iterator[Made]:
    """Generates a number of windows, one after the other."""
    random = np.random.default_rng(seed)
    names = [f"node{at}" for at in range(nodes)]
    taste = np.array(WEIGHTS) * np.exp(random.normal(0, 1, (nodes, 1, len(KEYS))))
    for window in range(number):
        yield _made(random, names, range(window * panes, (window + 1) * panes), taste)


def _made(random: np.random.Generator, nodes: list[str], panes: range, taste: Any) -> Made:
    shape = (len(nodes), len(panes))
    rate = 200 * np.exp(random.normal(0, 0.6, (len(nodes), 1)))
    trend = 1 + random.uniform(-0.5, 0.5, (len(nodes), 1)) * np.linspace(-0.5, 0.5, len(panes))
    records = 1 + random.poisson(rate * trend * np.exp(random.normal(0, 0.25, shape)))
    bursts = taste * random.gamma(4, 0.25, (*shape, len(KEYS)))
    ignored = 0.3 * taste.sum(2) * random.gamma(8, 0.125, shape)
    parts = bursts / (bursts.sum(2) + ignored)[:, :, None]
    counts = random.binomial(records[:, :, None], parts)
    level = 20 * np.exp(random.normal(0, 0.3, counts.shape))
    sums = np.round(level * random.gamma(2 * counts + 1e-9, 0.5), 3)
    small = random.binomial(counts, 15 / (15 + level))
    units = tuple((node, pane) for node in nodes for pane in panes)
    numbers = (_by_key(of) for of in (counts, sums, small))
    return Made(panes, units, tuple(records.ravel().tolist()), *numbers)


def _by_key(numbers: Any) -> dict[str, list[Any]]:
    """For each key, the numbers of all panes of the first node, of the second, and so on."""
    return {key: numbers[:, :, at].ravel().tolist() for at, key in enumerate(KEYS)}


def job(kind: str, *, part: float | None = None, fidelity: Any = None, seed: int = 0) -> Job:
    """The job whose windows these are; `part` of the panes are drawn."""
    return Job(
        map=_nothing,
        combine=_either,
        bounds=kind,  # type: ignore[arg-type]  # one of KINDS
        range=PANES,
        slide=PANES,
        pane=1,
        by="records",
        fidelity=Area(part, drawn=True) if part is not None else fidelity,
        seed=seed,
    )


def _nothing(record: Any) -> list[tuple[str, Any]]:
    return []


def _either(a: Any, b: Any) -> Any:
    return a


def values_of(kind: str, made: Made, kept: Set[Unit]) -> dict[str, dict[Unit, Any]]:
    """Returns the combined values of these panes by key. Panes without the key are left out."""
    found: dict[str, dict[Unit, Any]] = {}
    for key in KEYS:
        counts, sums, small = made.counts[key], made.sums[key], made.small[key]
        here = [(unit, at) for at, unit in enumerate(made.units) if unit in kept and counts[at]]
        if kind == "count":
            found[key] = {unit: counts[at] for unit, at in here}
        elif kind == "sum":
            found[key] = {unit: sums[at] for unit, at in here}
        elif kind == "mean":
            found[key] = {unit: [sums[at], counts[at]] for unit, at in here}
        elif kind == "ratio":
            found[key] = {unit: [small[at], counts[at]] for unit, at in here}
        else:
            found[key] = {unit: [small[at], counts[at] - small[at]] for unit, at in here}
    return found


def truth(kind: str, made: Made, keys: tuple[str, ...] = KEYS) -> float:
    """Returns the answer of a window for these keys together if nothing is missing."""
    count = sum(sum(made.counts[key]) for key in keys)
    if kind in ("count", "histogram"):
        return count
    above = made.small if kind == "ratio" else made.sums
    total = sum(sum(above[key]) for key in keys)
    return total if kind == "sum" else total / count


def kept_of(one: Job, made: Made, under: int) -> set[Unit]:
    """The panes of a rank under this one."""
    return {unit for unit in made.units if rank(one.seed, *unit, one.span.panes) < under}


def manifests_of(made: Made, kept: Set[Unit], *, told: bool) -> dict[Unit, PaneManifest]:
    """Returns the manifests from the nodes; with `told`, also those of the omitted panes, with
    their numbers of records."""
    manifests: dict[Unit, PaneManifest] = {}
    for unit, records in zip(made.units, made.records, strict=True):
        if unit in kept:
            manifests[unit] = manifest("data", 0)
            manifests[unit].records = records
        elif told:
            manifests[unit] = manifest("lost", 0, why="drawn")
            manifests[unit].shed = records
    return manifests


def covered(
    number: int, kinds: tuple[str, ...] = KINDS, *, part: float = 0.5, told: bool = True, seed: int
) -> list[dict[str, Any]]:
    """Counts the intervals that contain the truth, for totals and for each key, and their mean half
    width relative to the truth."""
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    jobs = {kind: job(kind, part=part) for kind in kinds}
    for made in windows(number, seed):
        kept = kept_of(jobs[kinds[0]], made, round(part * PANES))
        manifests = manifests_of(made, kept, told=told)
        for kind, one in jobs.items():
            values = values_of(kind, made, kept)
            sampled = estimate(one, made.nodes, made.panes, manifests, values)
            pairs = [("total", sampled.total, truth(kind, made))]
            pairs += [(k, bound, truth(kind, made, (k,))) for k, bound in sampled.keys.items()]
            if kind == "histogram":
                small, buckets = sum(made.small["home"]), sampled.keys["home"].buckets
                assert buckets is not UNSET
                pairs.append(("home, lower bucket", buckets[0], small))
            for what, bound, true in pairs:
                if bound.high is None or not true:
                    continue
                assert bound.low is not None
                inside = bound.low <= true <= bound.high
                width = (bound.high - bound.low) / 2 / true
                found.setdefault((kind, what), []).append((inside, width))
    return [
        {
            "kind": kind,
            "what": what,
            "windows": len(of),
            "covered": sum(inside for inside, _ in of) / len(of),
            "width": sum(width for _, width in of) / len(of),
        }
        for (kind, what), of in found.items()
    ]


def contract(number: int, kind: str, error: Error, *, seed: int) -> list[dict[str, Any]]:
    """For each window: the round after which it closed, the fraction of panes read, and the
    relative error of its total."""
    one = job(kind, fidelity=error)
    rows = list[dict[str, Any]]()
    for made in windows(number, seed):
        true = truth(kind, made)
        for at, end in enumerate(rounds(PANES)):
            kept = kept_of(one, made, end)
            manifests = manifests_of(made, kept, told=False)
            assert rounds_done(one, made.nodes, made.panes, manifests) == at + 1
            values = values_of(kind, made, kept)
            total = estimate(one, made.nodes, made.panes, manifests, values).total
            if error.look(total):
                assert total.value is not None
                off = abs(total.value - true) / abs(true)
                rows.append({"rounds": at + 1, "part": end / PANES, "error": off})
                break
    return rows
