"""Do the intervals hold when nodes shed by rank, with the shedder that agents have?

The windows are those of `drawn_windows`. Each node works on its panes for as long as a pane has
records, with a share of its processor that wavers and that another work changes from window to
window; what the shedder lets it make is what the root has. Here the sample does depend a little on
what the panes hold: large ones take long.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from bench.imr.drawn_windows import PANES, Made, Unit, manifests_of, truth, values_of, windows
from millstream.windows.bounds.estimates import estimate
from millstream.windows.job import Job
from millstream.windows.panes.shedder import Shedder

LATENCY = 160.0
"""Seconds of a window's work, with the whole processor."""
CHUNK = 0.25


def job(kind: str) -> Job:
    """The job whose nodes shed."""

    def nothing(record: Any) -> list[tuple[str, Any]]:
        return []

    def either(a: Any, b: Any) -> Any:
        return a

    return Job(
        map=nothing,
        combine=either,
        bounds=kind,  # type: ignore[arg-type]  # one of KINDS
        range=PANES,
        pane=1,
        by="records",
        shed="drawn",
        latency=f"{LATENCY}s",
    )


class Nodes:
    """Nodes that make the panes of one window after the other."""

    def __init__(self, one: Job, seed: int) -> None:
        self._job, self._random = one, Random(seed)
        self._shedders: dict[str, Shedder] = {}
        self._now: dict[str, float] = {}

    def made_of(self, made: Made) -> set[Unit]:
        """The panes of a window that come in time."""
        records = dict(zip(made.units, made.records, strict=True))
        return {
            (node, pane)
            for node in made.nodes
            for pane in self._worked(node, made.panes, [records[node, p] for p in made.panes])
        }

    def _worked(self, node: str, panes: range, records: list[int]) -> Iterable[int]:
        shedder = self._shedders.setdefault(node, Shedder(self._job, node))
        now = max(self._now.get(node, 0.0), panes.start / PANES * LATENCY)
        share, skip = self._random.uniform(0.3, 0.9), 0
        for pane, size in zip(panes, records, strict=True):
            shedder.begin(pane, now)
            to: int | None = skip
            if pane >= skip and shedder.drawn(pane):
                work, done, to = LATENCY * size / sum(records), 0.0, None
                while done < work and to is None:
                    to = shedder.decide(now, pane, done / work, _due)
                    done += CHUNK * share * self._random.uniform(0.7, 1.3)
                    now += CHUNK
            if to is None:
                yield pane
            skip = to or 0
            shedder.ended(pane, now, made=to is None)
        self._now[node] = now


def _due(pane: int) -> float:
    return (pane // PANES + 1) * LATENCY


def covered(number: int, kinds: tuple[str, ...], *, seed: int) -> list[dict[str, Any]]:
    """Counts the intervals of totals that contain the truth. Windows with a node that sent no
    sample are bounded by the worst case, and are counted separately."""
    jobs = {kind: job(kind) for kind in kinds}
    nodes = Nodes(jobs[kinds[0]], seed)
    rows: list[dict[str, Any]] = [
        {"kind": kind, "windows": 0, "inside": 0, "worst_case": 0, "panes": 0.0} for kind in kinds
    ]
    for made in windows(number, seed):
        kept = nodes.made_of(made)
        manifests = manifests_of(made, kept, told=True)
        for row, (kind, one) in zip(rows, jobs.items(), strict=True):
            values = values_of(kind, made, kept)
            bound = estimate(one, made.nodes, made.panes, manifests, values).total
            if bound.method == "worst case":
                row["worst_case"] += 1
                continue
            assert bound.low is not None
            assert bound.high is not None
            row["windows"] += 1
            row["inside"] += bound.low <= truth(kind, made) <= bound.high
            row["panes"] += len(kept) / len(made.units)
    return rows
