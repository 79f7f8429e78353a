"""The library of algebras: aggregates whose events can be merged in any order.

    from millstream import App, algebra

    app = App("shop")
    app.source("sales", key="product")
    app.aggregate("sales", algebra=algebra.sum("amount"), name="revenue")

Each function returns an `Algebra` (`millstream.model.algebra` says what it guarantees). `of` is a
field of the event's value, a dotted path or a function of the value. Without it the value itself is
used. If the field is missing or has the wrong type, the event becomes a dead letter. A slate is a
JSON object that explains itself: it states its error if it has one, and holds all that is needed to
merge more events into it.

    >>> from millstream import Event, algebra
    >>> mean = algebra.mean("price")
    >>> lifted = [mean.lift(Event("sales", 1, "pen", {"price": price})) for price in (2, 3)]
    >>> mean.write(mean.merge(*lifted))
    {'mean': 2.5, 'count': 2, 'sum': 5}

Exact: `count`, `sum`, `mean`, `variance`, `min`, `max`, `histogram`, `top` with `by`. With a stated
error: `distinct`, `quantiles`, `top` without `by`. The reasons for the choice of each sketch are in
docs/design/2026-11-15-sketches.md.

`totals` has count, sum, mean and variance, `extremes` min and max; the others have modules of their
own. `field_picker` picks what they are given, `exact` adds without rounding, also for many keys
at once, and `buckets` counts by bucket.
"""

from collections.abc import Callable

from millstream.algebra.distinct import distinct
from millstream.algebra.extremes import max_of as max
from millstream.algebra.extremes import min_of as min
from millstream.algebra.histogram import histogram
from millstream.algebra.quantiles import quantiles
from millstream.algebra.top import top
from millstream.algebra.totals import count, mean, variance
from millstream.algebra.totals import sum_of as sum
from millstream.model.algebra import Algebra

__all__ = [
    "BUILT_IN",
    "Algebra",
    "count",
    "distinct",
    "histogram",
    "max",
    "mean",
    "min",
    "quantiles",
    "sum",
    "top",
    "variance",
]

BUILT_IN: dict[str, Callable[..., Algebra]] = {
    "count": count,
    "distinct": distinct,
    "histogram": histogram,
    "max": max,
    "mean": mean,
    "min": min,
    "quantiles": quantiles,
    "sum": sum,
    "top": top,
    "variance": variance,
}
"""The algebras by name, for applications in TOML files."""
