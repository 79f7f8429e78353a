"""Changes of slates as an output: how it is declared, drawn and tried in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.config import load
from millstream.errors import DefinitionError
from millstream.graph import mermaid, text
from millstream.model.stream import ChangeOutput


def shop(*subscribes: str) -> ms.App:
    """Counts by customer, with a reader of whatever streams are named besides."""
    app = ms.App("shop")
    app.source("orders", key="customer", ts="at", unit="us")

    @app.update("orders", *subscribes)
    def count(event: Any, slate: dict[str, Any]) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        if event.value.get("bye"):
            yield ms.forget()

    return app


def test_it_is_an_output_and_no_stream() -> None:
    """It can have a sink, under the update's name or another. It is not among the streams."""
    for name, output in ((None, "count.changes"), ("counts", "counts")):
        app = shop()
        app.changes("count", name=name)
        assert app.checked().outputs == (output,)
        assert app.checked().streams == ("orders",)


@pytest.mark.parametrize(
    ("update", "name", "wrong"),
    [
        ("cuont", None, "changes of 'cuont': unknown update 'cuont'.* did you mean 'count'"),
        ("count", "orders", "a name of its own; 'orders' is used already; .* name="),
        ("count", "late", "'late' is used already"),
        ("count", "no good", "changes.*no good"),
    ],
)
def test_what_is_refused(update: str, name: str | None, wrong: str) -> None:
    """An update that is not there, and a name that is taken or none."""

    def declared() -> None:
        app = shop()
        app.changes(update, name=name)
        app.checked()

    with pytest.raises(DefinitionError, match=wrong):
        declared()


def test_they_are_published_once() -> None:
    """An update has one output of changes; whoever else wants them reads that."""
    app = shop()
    app.changes("count")
    app.changes("count", name="counts")
    with pytest.raises(DefinitionError, match="changes of 'count' are published twice"):
        app.checked()


def test_no_function_may_read_it() -> None:
    """The changes of a batch depend on the batches, so they feed no function."""
    app = shop("count.changes")
    app.changes("count")
    with pytest.raises(DefinitionError, match=r"for sinks and tails only.*let 'count' emit"):
        app.checked()


def test_a_file_says_the_same(tmp_path: Path) -> None:
    """`[changes.UPDATE]` is `app.changes`, with its sink beside it."""
    (tmp_path / "shop.toml").write_text(
        "[app]\nname = 'shop'\n[streams.orders]\nsource = true\n"
        "[updates.count]\nalgebra = 'count'\nsubscribes = 'orders'\n"
        "[changes.count]\nname = 'counts'\nsink = 'kafka:counts?servers=a:9092'\n"
    )
    loaded = load(str(tmp_path / "shop.toml"))
    assert loaded.app.checked().changes == (ChangeOutput("counts", "count"),)
    assert loaded.app.settings["sinks"] == {"counts": "kafka:counts?servers=a:9092"}
    wrong = (tmp_path / "shop.toml").read_text().replace("[changes.count]", "[changes.cuont]")
    (tmp_path / "shop.toml").write_text(wrong)
    with pytest.raises(DefinitionError, match=r"shop.toml:8: .*did you mean 'count'"):
        load(str(tmp_path / "shop.toml"))


def test_it_is_drawn() -> None:
    """In the tree and the flowchart it hangs at its update."""
    app = shop()
    app.changes("count")
    assert "└─ count.changes               changes of slates, output" in text(app.checked())
    assert "    f0 --> o0" in mermaid(app.checked())


def test_in_memory_each_call_is_a_batch() -> None:
    """The last value of each slate that a call has changed; None once it is forgotten, with the
    time of the event that did it. A slate that is as before is not a change."""
    app = shop()
    app.changes("count")
    run = ms.testing.run(app, {"orders": [{"customer": c, "at": 5} for c in "abb"]})
    run.feed({"orders": [{"customer": "b", "at": 9, "bye": True}]})
    run.tick(by="1s")
    assert run.changes("count") == [
        ("a", "", {"n": 1}, 5, 0),
        ("b", "", {"n": 2}, 5, 0),
        ("b", "", None, 9, 1),
    ]
    with pytest.raises(DefinitionError, match=r"app.changes\('orders'\), or there are: count"):
        run.changes("orders")


def test_entries_of_a_table_in_memory() -> None:
    """A table changes entry by entry."""
    app = ms.App("seen")
    app.source("views", key="user", ts="at", unit="us")

    @app.update("views", slate=ms.Table)
    def seen(event: Any, slate: ms.Table) -> None:
        slate[event.value["page"]] = None
        slate.discard(event.value.get("left", ""))

    app.changes("seen")
    run = ms.testing.run(app, {"views": [{"user": "a", "at": 1, "page": "x"}]})
    run.feed({"views": [{"user": "a", "at": 2, "page": "y", "left": "x"}]})
    assert run.changes("seen") == [
        ("a", "x", None, 1, 0),
        ("a", "x", None, 2, 1),
        ("a", "y", None, 2, 1),
    ]
