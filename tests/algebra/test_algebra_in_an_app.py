"""The library as an application uses it: by its meaning, and light until it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import millstream as ms
from millstream import algebra

SALES: list[dict[str, Any]] = [
    {"user": user, "amount": amount}
    for user, amount in [("ann", 3), ("bob", 0.1), ("ann", 0.2), ("eve", 12.5), ("bob", 1)]
]
EVENTS = [ms.Event("sales", ts, "pen", value) for ts, value in enumerate(SALES)]

LIBRARY = {
    "count": (algebra.count(), {"count": 5}),
    "sum": (algebra.sum("amount"), {"sum": 16.8}),
    "mean": (algebra.mean("amount"), {"mean": 3.36, "count": 5}),
    "min": (algebra.min("amount"), {"min": 0.1}),
    "max": (algebra.max("amount"), {"max": 12.5}),
    "variance": (algebra.variance("amount"), {"variance": 27.463, "count": 5}),
    "top_by": (algebra.top(2, "user", "amount"), {"top": [["eve", 12.5], ["ann", 3]]}),
    "top": (algebra.top(2, "user"), {"top": [["ann", 2], ["bob", 2]], "rest": [["eve", 1]]}),
    "distinct": (algebra.distinct("user"), {"distinct": 3}),
    "quantiles": (algebra.quantiles("amount", at=[0.5]), {"count": 5, "bits": 6}),
    "histogram": (
        algebra.histogram("amount", width=5),
        {"histogram": [[0, 5, 4], [10, 15, 1]], "width": 5, "count": 5},
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_an_aggregate_of_an_application(name: str) -> None:
    """Declared as an aggregate, its slate is what its name says; an event that it cannot take is a
    dead letter that leaves the slate alone (the count looks at no value, so it takes all)."""
    one, wanted = LIBRARY[name]
    app = ms.App("shop")
    app.source("sales", key=lambda _: "pen")
    app.aggregate("sales", algebra=one, name=name)
    run = ms.testing.run(app, EVENTS)
    slate = run.slate(name, "pen")
    assert {field: slate[field] for field in wanted} == wanted
    before = json.dumps(slate)
    if one.needs_values:
        run.feed([ms.Event("sales", 99, "pen", b"raw")])
        assert json.dumps(run.slate(name, "pen")) == before
        assert len(run.dead_letters) == 1


@pytest.mark.parametrize("name", LIBRARY)
def test_the_public_check_holds(name: str) -> None:
    """The library's own algebras pass the check that users run on theirs."""
    ms.testing.check_algebra(LIBRARY[name][0], EVENTS)


def test_sketch_libraries_are_loaded_when_a_sketch_is_made() -> None:
    """Defining an application with every algebra loads neither datasketches nor numpy."""
    code = (
        "import sys; from millstream import algebra as a; "
        "a.distinct('x'); a.quantiles('x'); a.top(3); a.sum('x'); a.histogram(width=1); "
        "print([n for n in ('datasketches', 'numpy') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_same_bytes_in_every_process() -> None:
    """The hashes in a sketch do not depend on the process, as Python's own hash would."""
    code = (
        "from millstream import Event, algebra as a; import json; d = a.distinct(); "
        "p = d.gather(['k'] * 500, [f'u{n}' for n in range(500)])['k']; "
        "print(json.dumps(d.write(p)))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
