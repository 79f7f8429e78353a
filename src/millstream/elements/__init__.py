"""Processing elements (S4), and the standard ones, which need no code.

`STANDARD` resolves the names in a TOML file, as in `element = "count"`. The package does not import
Spark, and the engine does not know elements: they are made of maps, updates, slates and timers.

element            the base class of an element; element_base: the kinds of its fields
event_keys         the keyed attribute, which selects the element for an event
placement          turns an element into maps and updates; element_functions: those that are called
conditions         conditions on fields, for elements that users write

Each of the standard elements is a module in standard/.
"""

from __future__ import annotations

from millstream.elements.standard.concat import Concat
from millstream.elements.standard.count import Count
from millstream.elements.standard.deduplicate import Deduplicate
from millstream.elements.standard.extract import Extract
from millstream.elements.standard.filter import Filter
from millstream.elements.standard.forward import Forward
from millstream.elements.standard.join import Join
from millstream.elements.standard.merge import Merge
from millstream.elements.standard.rate_limit import RateLimit
from millstream.elements.standard.sample import Sample
from millstream.elements.standard.sessionise import Sessionise
from millstream.elements.standard.sliding_aggregate import Sliding
from millstream.elements.standard.sort import Sort
from millstream.elements.standard.split import Split
from millstream.elements.standard.statistics import Max, Mean, Min, Sum
from millstream.elements.standard.top import Top
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
