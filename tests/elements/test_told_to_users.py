"""The messages for mistakes with a standard element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.elements import Count, Join, Split, Top
from millstream.settings.setting_values import SOURCE_FORMATS

HEAD = """\
[app]
name = "ads"
order = "event-time"

[streams.clicks]
source = true

[streams.serves]
source = true

[streams.out]
output = true

"""
JOIN = """\
[elements.clicked]
element = "join"
keys = { clicks = "serve", serves = "serve" }
left = "clicks"
right = "serves"
within = "30m"
publishes = "out"
"""
SLIDING = """\
[elements.rate]
element = "sliding"
keys = { clicks = "page" }
slot = "1h"
slots = 3
publishes = "out"
"""
POPULAR = """\
[elements.views]
element = "count"
keys = { clicks = "page" }
every_events = 1
publishes = "counted"

[elements.popular]
element = "top"
keys = "counted"
every = "10m"
publish = "out"
"""
VISITS = """\
[elements.visits]
element = "sessionise"
keys = { clicks = "user" }
gap = "30m"
publishes = "out"
"""
BAD = (
    "'bad name!' must start with a letter or _, go on with letters, digits, _ . or -, and have at "
    "most 64 characters"
)


def told(folder: Path, text: str) -> tuple[str, str]:
    """The line that an error of a file names, and what it says."""
    path = folder / "app.toml"
    path.write_text(HEAD + text)
    with pytest.raises(ms.DefinitionError) as error:
        read_app(path)
    number, _, message = str(error.value).partition("app.toml:")[2].partition(": ")
    return (HEAD + text).splitlines()[int(number) - 1], message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            JOIN + 'every = "1m"\n',
            'every = "1m"',
            "element 'clicked': every must be left out: join emits on its own and takes no every",
        ),
        (
            JOIN + "every_events = 2\n",
            "every_events = 2",
            "element 'clicked': every_events must be left out: join emits on its own and takes no "
            "every_events",
        ),
        (
            JOIN.replace('"30m"', "30"),
            "within = 30",
            'element \'clicked\': within must be a duration in quotes, such as "30m" or "1h30m"; '
            "got 30",
        ),
        (
            SLIDING.replace('"1h"', "60"),
            "slot = 60",
            'element \'rate\': slot must be a duration in quotes, such as "30m" or "1h30m"; got 60',
        ),
        (
            SLIDING + 'aggregates = { spent = { name = "sum", off = "price" } }\n',
            'aggregates = { spent = { name = "sum", off = "price" } }',
            "element 'rate': aggregates must have for 'spent' the "
            "arguments of sum (of, stream, where); "
            "got 'off'; did you mean 'of'?",
        ),
        (
            POPULAR.replace('"10m"', '"10 minits"'),
            'every = "10 minits"',
            "element 'popular': every must be a duration such as '90d', '1h30m' or '250ms' (units "
            "us, ms, s, m, h, d, w); got '10 minits'",
        ),
        (
            POPULAR + "limit = 0\n",
            "limit = 0",
            "element 'popular': limit must be a whole number of events, 1 or more; got 0",
        ),
        (
            POPULAR + "size = 0\n",
            "size = 0",
            "element 'popular': size must be 1 or more; got 0",
        ),
        (
            VISITS.replace("30m", "-30m"),
            'gap = "-30m"',
            "element 'visits': gap must not be negative; got '-30m'",
        ),
        (
            VISITS + 'ttl = "5m"\n',
            'ttl = "5m"',
            "element 'visits': ttl must be as long as gap or longer, or the element forgets too "
            "early; got '5m'; old entries are dropped even without a ttl",
        ),
        (
            VISITS.replace('publishes = "out"', 'publish = "bad name!"'),
            'publish = "bad name!"',
            f"element 'visits': publish must name a stream: output name {BAD}",
        ),
        (
            POPULAR.replace('"counted"', '["counted", "bad name!"]', 1),
            'publishes = ["counted", "bad name!"]',
            f"element 'views': publishes must name a stream: stream name {BAD}",
        ),
        (
            JOIN + 'select = { query = "rigth.query" }\n',
            'select = { query = "rigth.query" }',
            "element 'clicked': select must have a path for each field to emit, except for 'key', "
            "as in query = 'right.query'; got query = 'rigth.query'; did you mean 'right'?",
        ),
        (
            JOIN.replace("{ clicks", "{ click"),
            'keys = { click = "serve", serves = "serve" }',
            "element 'clicked': keys must name the streams left and right, 'clicks' and 'serves', "
            "and no others; got 'click', 'serves'",
        ),
    ],
)
def test_the_line_and_the_element(tmp_path: Path, text: str, line: str, message: str) -> None:
    """A mistake is told at its line, of the element as the user has named it, in the user's
    terms."""
    assert told(tmp_path, text) == (line, message)


@pytest.mark.parametrize("element", ["deduplicate", "rate_limit", "sessionise", "filter", "split"])
def test_what_emits_on_its_own_takes_no_every(tmp_path: Path, element: str) -> None:
    """The element is named as in the file. There is no method that a user could write for it."""
    of = {"deduplicate": 'within = "1h"', "sessionise": 'gap = "1h"', "filter": "where = { n = 1 }"}
    of |= {"rate_limit": 'most = 1\nper = "1h"', "split": ""}
    text = f'[elements.e]\nelement = "{element}"\nkeys = "clicks"\npublishes = "out"\n'
    line, message = told(tmp_path, f'{text}{of[element]}\nevery = "1m"\n')
    assert line == 'every = "1m"'
    assert message.endswith(f"{element} emits on its own and takes no every")


def test_a_stream_that_is_not_there(tmp_path: Path) -> None:
    """The element is blamed that names it, and only what a user could mean is offered: not the
    stream that would be made of the wrong name, nor those between the parts of an element."""
    line, message = told(tmp_path, POPULAR.replace("{ clicks", "{ klix"))
    assert line == 'keys = { klix = "page" }'
    assert message == (
        "element 'views' subscribes to an unknown stream 'klix'; "
        "there are: clicks, counted, out, serves"
    )
    line, message = told(tmp_path, JOIN.replace("clicks", "click"))
    assert message.endswith("there are: clicks, out, serves; did you mean 'clicks'?")


@pytest.mark.parametrize("address", ["jsonn:x", "sqlite:x.db", "zip:x"])
def test_the_formats_of_a_source(tmp_path: Path, address: str) -> None:
    """Whatever the mistake, the same formats are offered, and only those that a source reads."""
    line, message = told(tmp_path, f'[streams.more]\nsource = "{address}"\n')
    assert line == f'source = "{address}"'
    formats = ", ".join(SOURCE_FORMATS)
    must = f"'source' in [streams.more]: a source's format must be one of {formats}; "
    assert message.startswith(f"{must}got {address!r}")
    assert message.endswith("; did you mean json:x?") == (address == "jsonn:x")


def letter(app: ms.App, value: Any) -> str:
    run = ms.testing.run(app, [("clicks", 1, "", value)])
    (dead,) = run.dead_letters
    return dead.error


def ads(element: Any, keys: Any, **options: Any) -> ms.App:
    app = ms.App("ads")
    for source in keys:
        app.source(source)
    app.output("out")
    app.add(element, name="mine", keys=keys, publishes="out", **options)
    return app


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            '{"page": "/a"}',
            "the value has no field 'page': it is text, not an object",
        ),
        (5, "the value has no field 'page': it is a number, not an object"),
        (["a"], "the value has no field 'page': it is a list, not an object"),
        (None, "the value has no field 'page': it is null, not an object"),
        ({"pgae": 1}, "the value has no field 'page'; did you mean 'pgae'?"),
        ({"user": 1}, "the value has no field 'page'"),
    ],
)
def test_an_event_without_its_key(value: Any, message: str) -> None:
    """The dead letter says what came in place of an object, or the field that was meant."""
    error = letter(ads(Count(), {"clicks": "page"}, every_events=1), value)
    assert error.endswith(f"element 'mine', stream 'clicks': {message}")


def test_a_field_within_a_field() -> None:
    """The error names the missing step of a path."""
    app = ads(Count(), {"clicks": "at.page"}, every_events=1)
    assert "no field 'at.page'; did you mean 'at.pgae'?" in letter(app, {"at": {"pgae": 1}})
    assert "no field 'at.page': 'at' is text, not an object" in letter(app, {"at": "/a"})
    assert "no field 'at.page'; did you mean 'att'?" in letter(app, {"att": {"page": 1}})


@pytest.mark.parametrize(
    ("element", "keys", "value"),
    [
        (Join("clicks", "serves", "1h"), ["clicks", "serves"], "text"),
        (Split(), ["clicks"], {"text": 5}),
        (Top(), ["clicks"], {"key": "a", "count": "many"}),
    ],
)
def test_dead_letters_name_the_element_as_the_user_does(
    element: Any, keys: Any, value: Any
) -> None:
    """Not by its class, of which there may be several."""
    assert "element 'mine'" in letter(ads(element, keys), value)
