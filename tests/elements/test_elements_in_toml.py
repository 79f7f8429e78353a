"""Elements in a TOML file: the same application as in Python, and mistakes with their line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.elements import Count, Filter, Top
from millstream.settings.setting_values import SOURCE_FORMATS

MODULE = '''
from dataclasses import dataclass
import millstream as ms

@dataclass
class Louder(ms.Element):
    """Counts, from so many on."""

    least: ms.Configured[int]
    words: ms.Configured[list[str]] = None
    seen: int = 0

    def process_event(self, event):
        self.seen += 1

    def output(self):
        if self.seen >= self.least:
            yield self.publish(self.seen)

@dataclass
class Odd(Louder):
    every: ms.Configured[int] = 1

something = 5
'''

FILE = """\
[app]
name = "shop"
order = "event-time"

[streams.sales]
source = true

[streams.returns]
source = true

[streams.hot]
sink = "sqlite:hot.db"

[elements.louder]
element = "louder_elements:Louder"
keys = { sales = "item", returns = ["shop", "thing"] }
least = 2
words = ["a", "b"]
every = "10s"
every_events = 5
clock = "wall"
publish = "loud"
ttl = "1h"
limit = 100
overload = "drop"
keep = 50
memory = "1MiB"

[elements.counts]
element = "count"
keys = "sales"
every_events = 1
publishes = "counted"

[elements.best]
element = "top"
keys = { counted = "*" }
size = 3
publishes = ["hot"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Any:
    (tmp_path / "louder_elements.py").write_text(MODULE)
    (tmp_path / "app.toml").write_text(FILE)
    yield tmp_path / "app.toml"
    sys.modules.pop("louder_elements", None)


def edited(path: Path, old: str, new: str) -> str:
    """Returns the error for a file with a mistake in it."""
    assert FILE.count(old) >= 1
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(ms.DefinitionError) as error:
        read_app(path)
    return str(error.value)


def test_the_file_is_the_application_in_python(project: Path) -> None:
    """With the properties and the place of each element; modules are looked for beside it."""
    app, given = read_app(project)
    louder = sys.modules["louder_elements"].Louder
    same = ms.App("shop", order="event-time")
    same.source("sales")
    same.source("returns")
    same.output("hot")
    same.add(
        louder(2, ["a", "b"]),
        name="louder",
        keys={"sales": "item", "returns": ["shop", "thing"]},
        every="10s",
        every_events=5,
        clock="wall",
        publish="loud",
        ttl="1h",
        limit=100,
        overload="drop",
        keep=50,
        memory="1MiB",
    )
    same.add(Count(), name="counts", keys="sales", every_events=1, publishes="counted")
    same.add(Top(size=3), name="best", keys={"counted": "*"}, publishes=["hot"])
    assert app == same
    assert given["sinks"] == {"hot": f"sqlite:{project.parent / 'hot.db'}"}


@pytest.mark.parametrize(
    ("old", "new"),
    [("least = 2", "least = 3"), ('every = "10s"', 'every = "11s"'), ('"item"', '"thing"')],
)
def test_another_file_is_another_application(project: Path, old: str, new: str) -> None:
    """Equality looks at properties, schedules and keys."""
    app, _ = read_app(project)
    project.write_text(FILE.replace(old, new, 1))
    assert app != read_app(project)[0]


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ('"count"', '"cuont"', 'element = "cuont"', "did you mean 'count'?"),
        ('element = "count"\n', "", "[elements.counts]", "[elements.counts] needs 'element'"),
        ('keys = "sales"\n', "", "[elements.counts]", "[elements.counts] needs 'keys'"),
        ('keys = "sales"', "keys = 5", "keys = 5", "must be text or a list or a table"),
        ('keys = "sales"', 'keys = "sale"', 'keys = "sale"', "did you mean 'sales'?"),
        ("every_events = 1", "evry_events = 1", "evry_events", "did you mean 'every_events'?"),
        ("every_events = 1", "every_events = 0", "every_events = 0", "1 or more; got 0"),
        ('every = "10s"', 'every = "soon"', 'every = "soon"', "every"),
        ('clock = "wall"', 'clock = "moon"', 'clock = "moon"', "clock must be 'event' or 'wall'"),
        ('ttl = "1h"', "ttl = true", "ttl = true", "ttl must be a duration"),
        ("least = 2", 'least = "2"', 'least = "2"', "least must be a whole number; got str '2'"),
        ("least = 2", "lest = 2", "lest = 2", "did you mean 'least'?"),
        ("least = 2\n", "", 'element = "louder_elements:Louder"', "needs 'least'"),
        ("size = 3", "size = 0", "size = 0", "size must be"),
        ('"a", "b"', "1", "words = [1]", "words must be a list of text"),
        (
            "words =",
            "seen = 5\nwords =",
            "seen = 5",
            "seen must be left out: it belongs to the slate",
        ),
        ("Louder", "Loudr", "louder_elements:Loudr", "did you mean 'Louder'?"),
        ("louder_elements:", "lauder:", "lauder:Louder", "no module 'lauder'"),
        (
            "Louder",
            "something",
            "louder_elements:something",
            "must name a class of elements; got 5",
        ),
        ("Louder", "Odd", "louder_elements:Odd", "or its field 'every' renamed"),
        (
            'overload = "drop"',
            'overload = "drip"',
            'overload = "drip"',
            "one of drop, divert, throttle",
        ),
        (
            'publish = "loud"',
            'publish = "l d"',
            'publish = "l d"',
            "output name 'l d' must start",
        ),
        ('"sqlite:hot.db"', '"sqlite:"', 'sink = "sqlite:"', "names no file"),
        ("[elements.counts]", '[elements."c s"]', '[elements."c s"]', "element name 'c s' must"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    project: Path, old: str, new: str, at: str, message: str
) -> None:
    """Each mistake in a table of an element is refused with its line and advice."""
    error = edited(project, old, new)
    assert message in error
    lines = project.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if at in text)
    assert error.startswith(f"{project}:{line}: ") or f"app.toml:{line}: " in error


@pytest.mark.parametrize("stream", ["late", "deadletters", "dropped"])
def test_a_table_is_not_for_what_has_no_single_key(project: Path, stream: str) -> None:
    """A sink of Millstream's own streams may not be a table; as a source it is none either."""
    new = f'[streams.{stream}]\nsink = "sqlite:x.db"\n[streams.hot]'
    error = edited(project, "[streams.hot]", new)
    assert "than a table's columns hold; give it json:DIR" in error
    error = edited(project, "source = true", 'source = "sqlite:x.db"')
    known = ", ".join(SOURCE_FORMATS)
    assert f"a source's format must be one of {known}; got 'sqlite:x.db'" in error
    assert "app.toml:6: " in error


def test_a_standard_element_needs_no_module(tmp_path: Path) -> None:
    """Keys, properties and a place are all that is said."""
    path = tmp_path / "app.toml"
    path.write_text(
        '[app]\nname = "a"\n[streams.s]\nsource = true\n[elements.some]\nelement = "filter"\n'
        'keys = "s"\nwhere = { n = 1 }\npublish = "out"\n'
    )
    same = ms.App("a")
    same.source("s")
    same.add(Filter(where={"n": 1}), name="some", keys="s", publish="out")
    assert read_app(path)[0] == same
