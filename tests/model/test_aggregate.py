"""`app.aggregate`: accepted and refused arguments, and how a store and a drawing show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream import algebra
from millstream.app_file.app_file import read_app
from millstream.description import describe
from millstream.errors import DefinitionError
from millstream.graph.words import describe as words


def an_app(**given: Any) -> ms.App:
    app = ms.App("shop")
    app.source("sales", key="product", ts="at", unit="us")
    if given:
        app.aggregate("sales", **given)
    return app


def test_an_aggregate_is_an_update_that_emits_nothing() -> None:
    """It has slates, a ttl and a place in the graph, and no stream of its own."""
    app = an_app(algebra=algebra.sum("amount"), name="revenue", ttl="1h")
    update = app.workflow().update("revenue")
    assert update.emits == ()
    assert update.ttl == 3_600_000_000
    assert words(update) == "aggregate, sum of=amount, ttl 1h"
    (function,) = describe(app.workflow(), {"sales": "json:in"}).functions
    assert (function.kind, function.slate, function.place) == (
        "update",
        "aggregate:sum of=amount",
        "",
    )


def test_what_it_means() -> None:
    """The slate of a key is the merge of its events; what cannot be lifted is a dead letter."""
    app = an_app(algebra=algebra.sum("amount"), name="revenue")
    run = ms.testing.run(
        app, [("sales", n, "pen", {"amount": amount}) for n, amount in enumerate((2, 3, "x", 5))]
    )
    assert run.slate("revenue", "pen") == {"sum": 10}
    (letter,) = run.dead_letters
    assert (letter.function, letter.value) == ("revenue", {"amount": "x"})


def test_a_slate_that_has_expired_begins_anew() -> None:
    """The ttl is as for any update: by event time, since the last event."""
    app = an_app(algebra=algebra.count(), name="hits", ttl="10us")
    run = ms.testing.run(app, [("sales", ts, "pen", None) for ts in (0, 10, 21, 31)])
    assert run.slate("hits", "pen") == {"count": 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algebra": algebra.count, "name": "hits"}, "call it, as in algebra=count()"),
        ({"algebra": "count", "name": "hits"}, "aggregate 'hits': algebra must be an Algebra"),
        ({"algebra": algebra.count(), "name": "a b"}, "aggregate name 'a b' must start"),
        ({"algebra": algebra.count(), "name": "hits", "ttl": "soon"}, "aggregate 'hits': ttl must"),
    ],
)
def test_mistakes_are_found_at_once(given: dict[str, Any], message: str) -> None:
    """A wrong argument is named where it is given."""
    with pytest.raises(DefinitionError) as raised:
        an_app(**given)
    assert message in str(raised.value)


TOML = """
[app]
name = "shop"

[streams.sales]
source = true
key = "product"
ts = "at"
unit = "us"

[updates.revenue]
algebra = { name = "sum", of = "amount" }
subscribes = "sales"
ttl = "1h"

[updates.hits]
algebra = "count"
subscribes = ["sales"]

[updates.own]
algebra = "shop_algebras:own"
subscribes = "sales"
"""


def shop(folder: Path, toml: str) -> Path:
    """An application file, and the module that it names."""
    module = folder / "shop_algebras.py"
    module.write_text("from millstream import algebra\n\nown = algebra.max('amount')\n")
    (folder / "shop.toml").write_text(toml)
    return folder / "shop.toml"


def test_a_toml_file_makes_the_same(tmp_path: Path) -> None:
    """A name of the library, a table with its arguments, or an algebra of one's own."""
    read, _ = read_app(shop(tmp_path, TOML))
    app = an_app(algebra=algebra.sum("amount"), name="revenue", ttl="1h")
    app.aggregate("sales", algebra=algebra.count(), name="hits")
    app.aggregate("sales", algebra=algebra.max("amount"), name="own")
    found, wanted = read.workflow(), app.workflow()
    assert found.slate_kinds == wanted.slate_kinds
    assert [u.ttl for u in found.updates] == [u.ttl for u in wanted.updates]
    assert [u.subscribes for u in found.updates] == [u.subscribes for u in wanted.updates]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('"count"', '"cuont"', 17, "did you mean 'count'?"),
        ('of = "amount"', 'off = "amount"', 12, "the arguments of sum (of)"),
        ('ttl = "1h"', 'slate = "dict"', 14, "'slate' in [updates.revenue] must be left out"),
        ('ttl = "1h"', "limit = 5", 14, "'limit' in [updates.revenue] must be left out"),
        ('"1h"', '"soon"', 14, "aggregate 'revenue': ttl must be a duration"),
        ('"count"', '{ of = "x" }', 17, "must name one of count"),
        ('subscribes = ["sales"]', 'subscribes = "sale"', 18, "unknown stream 'sale'"),
    ],
)
def test_a_mistake_in_the_file_has_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    """The error names the line and what must be there."""
    path = shop(tmp_path, TOML.replace(old, new, 1))
    with pytest.raises(DefinitionError) as raised:
        read_app(path)
    assert f"shop.toml:{line}: " in str(raised.value)
    assert message in str(raised.value)
