"""The expected result of examples/hdfs_writes.py, and its errors on incomplete data (iMR, Figure
12).

*Rejected*: of the HDFS nodes that have a histogram, the part whose histogram from the panes that
were received differs from its histogram from all panes, by the Kolmogorov-Smirnov test at the 5%
level. The one is a part of the other, so they are nearer to each other than two samples would be;
the paper compares them in the same way. Nodes that have none are told by `found`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from examples.hdfs_writes import EDGES, Histogram, histograms
from examples.imr.hdfs_traffic import Write, address
from examples.imr.incomplete import Cell, Panes, answers
from examples.imr.kolmogorov_smirnov import compared
from millstream.windows.job import Job

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class HistogramErrors:
    """The errors of a window's histograms."""

    rejected: float
    """The part of the histograms that differ from the whole ones."""
    distance: float
    """The mean distance of the histograms from those of all panes."""
    nodes_found: float
    """The part of the nodes that have a histogram."""


def true_histograms(writes: Iterable[Write]) -> dict[str, Histogram]:
    """The histogram of each node's writes, counted one by one."""
    histograms: dict[str, Histogram] = {}
    for write in writes:
        counts = histograms.setdefault(address(write.node), [0] * (len(EDGES) + 1))
        counts[sum(write.seconds > edge for edge in EDGES)] += 1
    return histograms


def errors(true: Mapping[str, Histogram], received: Mapping[str, Histogram]) -> HistogramErrors:
    """The errors of the histograms that were found."""
    tests = [compared(true[node], received[node]) for node in true if node in received]
    return HistogramErrors(
        rejected=fmean(test.p < LEVEL for test in tests) if tests else 0.0,
        distance=fmean(test.distance for test in tests) if tests else 0.0,
        nodes_found=len(tests) / len(true),
    )


def measure(
    job: Job, panes: Panes, all_cells: Collection[Cell], received: Collection[Cell]
) -> HistogramErrors:
    """The errors of a window of `all_cells` of which only some were received."""
    true, answered = (_of(answers(job, panes, cells)) for cells in (all_cells, received))
    return errors(true, answered)


def _of(blocks: Mapping[str, Any]) -> dict[str, Histogram]:
    return histograms(write for answer in blocks.values() for write in answer["writes"])
