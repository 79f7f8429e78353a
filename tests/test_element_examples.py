"""The examples and pages of the standard elements: each has both, and they run as they say."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from elements.example_files import is_final, run_example
from test_docs import examples

from fault_runs.published_rows import read_rows
from millstream import elements, testing
from millstream.app_file.app_file import read_app
from millstream.codec import encode_value
from millstream.elements import STANDARD
from millstream.elements.element_base import shape_of
from millstream.elements.placement import PLACEMENT
from millstream.modules import import_file
from millstream.settings.settings import Settings
from millstream.spark.runner import run

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted(path.stem for path in (ROOT / "examples" / "elements").glob("*.toml"))
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs" / "elements").glob("*.md"))
}
_TITLE = re.compile(r"^# (.+)$", re.M)
_PROPERTIES = re.compile(r"^## Properties$(.*?)(?=^## |\Z)", re.S | re.M)
_CELL = re.compile(r"^\| ([^|]+) \|", re.M)


def page_of(element: str) -> str:
    """The page that has the element in its title."""
    found = [
        name
        for name, text in PAGES.items()
        if name != "README.md"
        and (title := _TITLE.search(text))
        and element in re.split(r", | and ", title[1])
    ]
    assert len(found) == 1, f"one page of docs/elements must have {element!r} in its title: {found}"
    return found[0]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_gives_output_and_no_dead_letters(example: str) -> None:
    """Every file runs over its own data; a page shows how."""
    result = run_example(example)
    assert result.dead_letters == []
    outputs = result._workflow.outputs
    assert outputs
    assert any(result.stream(name) for name in outputs)
    path = f"examples/elements/{example}.toml"
    assert any(path in text for text in PAGES.values()), f"no page of docs/elements names {path}"


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_page_shows_how_its_output_is_seen(example: str) -> None:
    """The command of each file, on a page and in the file itself, has its outputs written to
    folders, and the first of them read from there."""
    app, _ = read_app(ROOT / "examples" / "elements" / f"{example}.toml")
    (page,) = (text for text in PAGES.values() if f"run examples/elements/{example}.toml" in text)
    file = (ROOT / "examples" / "elements" / f"{example}.toml").read_text()
    for text in (page, file):
        command = text.partition(f"run examples/elements/{example}.toml")[2].partition("\n\n")[0]
        sinks = dict(re.findall(r"--sink (\w+)=json:(\S+)", command))
        assert set(sinks) == set(app.checked().outputs)
        assert f"cat {next(iter(sinks.values()))}/*.jsonl" in command
    assert "From the root of the checkout" in page


@pytest.mark.parametrize("element", sorted(STANDARD))
def test_an_element_has_an_example(element: str) -> None:
    """Some example file uses it, with no code."""
    texts = [
        (ROOT / "examples" / "elements" / f"{example}.toml").read_text() for example in EXAMPLES
    ]
    assert any(f'element = "{element}"' in text for text in texts), (
        f"a file in examples/elements must have: element = {element!r}"
    )


@pytest.mark.parametrize("element", sorted(STANDARD))
def test_an_element_is_public(element: str) -> None:
    """An application in Python finds its class in `millstream.elements`."""
    name = STANDARD[element].__name__
    assert getattr(elements, name) is STANDARD[element]
    assert name in elements.__all__, f"add {name!r} to __all__ of elements/__init__.py"


@pytest.mark.parametrize("element", sorted(STANDARD))
def test_an_element_has_a_page_with_its_properties(element: str) -> None:
    """The table of properties has all that can be configured; the index of elements leads to
    it."""
    page = page_of(element)
    told = {
        name
        for section in _PROPERTIES.findall(PAGES[page])
        for cell in _CELL.findall(section)
        for name in re.findall(r"`(\w+)`", cell)
    }
    missing = set(shape_of(STANDARD[element]).configured) - told
    assert not missing, f"docs/elements/{page} does not tell of {sorted(missing)}"
    line = f"[{element}]({page})"
    assert line in PAGES["README.md"], f"the list in docs/elements/README.md must have {line}"


def test_the_table_of_placement_is_whole() -> None:
    """The index tells all that an element can be told of its place."""
    section = re.search(r"^## Placement$(.*?)(?=^## )", PAGES["README.md"], re.S | re.M)
    assert section
    cells = set(_CELL.findall(section[1])) - {"option"}
    assert cells == {f"`{option}`" for option in PLACEMENT}


@pytest.mark.spark
def test_examples_on_spark_are_the_reference(spark: Any, tmp_path: Path) -> None:
    """A few of the files, run as they are on Spark, give what the reference gives."""
    for example in ("count", "join", "sessionise", "sliding"):
        app, given = read_app(ROOT / "examples" / "elements" / f"{example}.toml")
        workflow = app.checked()
        folder = tmp_path / example
        settings = Settings.of(
            app.name,
            folder / "store",
            given["sources"],
            {name: f"json:{folder / name}" for name in workflow.outputs},
            shards=2,
            available_now=True,
            final=is_final(example),
        )
        assert run(app, settings, context=spark).dead_letters == 0
        expected = run_example(example)
        for name in workflow.outputs:
            rows = read_rows(str(folder / name))
            found = sorted((row["ts"], row["key"], encode_value(row["value"])) for row in rows)
            events = expected.stream(name)
            assert found == sorted((e.ts, e.key, encode_value(e.value)) for e in events), example


def test_the_query_counter_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures 3 and 4 side by side with ours: the file and the Python are one application, and
    the count of each query is published every ten minutes."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    blocks = examples("docs/elements/README.md")
    for name in ("query_counter.py", "queries.toml", "queries.py"):
        (tmp_path / name).write_text(blocks[name])
    app, given = read_app(tmp_path / "queries.toml")
    assert app == import_file(tmp_path / "queries.py").app
    assert given["sinks"] == {"counts": f"sqlite:{tmp_path / 'counts.db'}"}
    minutes = [1, 2, 3, 11, 25]
    events = [("queries", m * 60_000_000, "", {"query": "ab"[m % 2]}) for m in minutes]
    result = testing.run(app, events)
    published = [(e.ts // 60_000_000, e.key, e.value) for e in result.stream("counts")]
    assert published == [(10, "a", 1), (10, "b", 2), (20, "a", 1), (20, "b", 3)]
    for name in ("query_counter", "queries"):
        sys.modules.pop(name, None)


def test_the_tours_elements_as_pasted(tmp_path: Path) -> None:
    """The tour's file gives the three pages that were seen most, every ten minutes."""
    (tmp_path / "popular.toml").write_text(examples("docs/tour.md")["popular.toml"])
    app, _ = read_app(tmp_path / "popular.toml")
    pages = ["/a", "/b", "/a", "/c", "/d", "/a", "/b", "/c"]
    clicks = [{"page": page, "time": n} for n, page in enumerate(pages)]
    result = testing.run(app, {"clicks": [*clicks, {"page": "/a", "time": 700}]})
    assert result.dead_letters == []
    lists = [event.value["top"] for event in result.stream("best")]
    assert lists[-1] == [["/a", 3], ["/b", 2], ["/c", 2]]
