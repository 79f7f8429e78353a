"""Processing elements (S4), and the standard ones, which need no code.

`STANDARD` resolves the names in a TOML file, as in `element = "count"`. The package does not import
Spark, and the engine does not know elements: they are made of maps, updates, slates and timers.
"""

from __future__ import annotations

from millstream.elements.concat import Concat
from millstream.elements.count import Count
from millstream.elements.deduplicate import Deduplicate
from millstream.elements.extract import Extract
from millstream.elements.filter import Filter
from millstream.elements.forward import Forward
from millstream.elements.join import Join
from millstream.elements.merge import Merge
from millstream.elements.rate_limit import RateLimit
from millstream.elements.sample import Sample
from millstream.elements.sessionise import Sessionise
from millstream.elements.sliding_aggregate import Sliding
from millstream.elements.sort import Sort
from millstream.elements.split import Split
from millstream.elements.statistics import Max, Mean, Min, Sum
from millstream.elements.top import Top
from millstream.model.app import Part

STANDARD: dict[str, type[Part]] = {
    "count": Count,
    "sum": Sum,
    "mean": Mean,
    "min": Min,
    "max": Max,
    "sliding": Sliding,
    "join": Join,
    "deduplicate": Deduplicate,
    "sessionise": Sessionise,
    "rate_limit": RateLimit,
    "filter": Filter,
    "sample": Sample,
    "forward": Forward,
    "split": Split,
    "extract": Extract,
    "concat": Concat,
    "sort": Sort,
    "merge": Merge,
    "top": Top,
}
"""The standard elements by their names in a TOML file."""

__all__ = [
    "STANDARD",
    "Concat",
    "Count",
    "Deduplicate",
    "Extract",
    "Filter",
    "Forward",
    "Join",
    "Max",
    "Mean",
    "Merge",
    "Min",
    "RateLimit",
    "Sample",
    "Sessionise",
    "Sliding",
    "Sort",
    "Split",
    "Sum",
    "Top",
]
