"""Applications from TOML files, Python files and modules."""

import sys
from pathlib import Path

import pytest

import millstream as ms
from millstream.config import load

FUNCTIONS = """
from dataclasses import dataclass
import millstream as ms

def user_of(record):
    return record["user"]

def recognise(event):
    if "walmart" in event.value["venue"].lower():
        yield ms.emit("retailer_checkins", key="Walmart")

def see(event):
    yield ms.emit(value=1)

@dataclass
class Count:
    count: int = 0

def count(event, slate):
    slate.count += 1
    yield ms.timer(after="1h")
    if slate.count % 10 == 0:
        yield ms.emit("hot")

def flush(timer, slate):
    yield ms.forget()

def remember(event, slate):
    slate[event.key] = event.value
"""

DECORATED = """
import millstream as ms
from functions import *

app = ms.App("retail", order="event-time", on_error="fail", slate_limit="2MiB")
app.source("checkins", key="user", ts="time", unit="ms", lateness="5s", idle="1m")
app.source("visits", key=user_of)
app.map("checkins", "again", publishes=["retailer_checkins", "again"], name="recognise")(recognise)
app.update("retailer_checkins", publishes="hot", slate=Count, ttl="90d", on_timer=flush)(count)
app.map("visits", publishes="seen", name="see")(see)
app.update("seen", "hot", slate=ms.Table)(remember)
app.stream("again", delay="10s", after="retailer_checkins")
app.output("hot")
"""

TOML = """
[app]
name = "retail"
order = "event-time"
on_error = "fail"
slate_limit = 2097152

[streams.checkins]
source = "json:data/checkins"
key = "user"
ts = "time"
unit = "ms"
lateness = "5s"
idle = "1m"

[streams]
visits = { source = true, key = { function = "functions:user_of" } }

[maps.recognise]
function = "functions:recognise"
subscribes = [
  "checkins",  # with a comment, and a ] in it
  "again",
]
publishes = ["retailer_checkins", "again"]

[updates.count]
function = "functions:count"
subscribes = "retailer_checkins"
publishes = "hot"
slate = "functions:Count"
ttl = "90d"
on_timer = "functions:flush"

[maps.see]
function = "functions:see"
subscribes = ["visits"]
publishes = ["seen"]

[updates.remember]
function = "functions:remember"
subscribes = ["seen", "hot"]
slate = "table"

[streams.again]
delay = "10s"
after = "retailer_checkins"

[streams.hot]
output = true
sink = "parquet:out/hot"

[streams.late]
sink = "json:out/late"

[run]
shards = 4
batch_bytes = "1MiB"
store = "kept"
available_now = true
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A directory with functions.py to stand in; what it imports is forgotten afterwards."""
    before = dict(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    yield tmp_path
    for name in set(sys.modules) - set(before):
        file = getattr(sys.modules[name], "__file__", None)
        if file and file.startswith(str(tmp_path)):
            del sys.modules[name]


def refused(target: str) -> str:
    with pytest.raises(ms.DefinitionError) as caught:
        load(target)
    return str(caught.value)


def edited(project: Path, old: str, new: str) -> str:
    """The error of the TOML file with one edit."""
    assert old in TOML
    (project / "retail.toml").write_text(TOML.replace(old, new, 1))
    return refused("retail.toml")


def line_of(project: Path, text: str) -> int:
    lines = (project / "retail.toml").read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


def test_both_ways_build_equal_apps(project):
    """The decorators and the TOML file build the same application, in the same order."""
    (project / "retail.toml").write_text(TOML)
    (project / "decorated.py").write_text(DECORATED)
    built = load("retail.toml").app
    assert built == load("decorated.py").app
    assert [f.name for f in built.workflow().functions] == ["recognise", "count", "see", "remember"]


def test_a_different_file_is_a_different_app(project):
    """Equality is not vacuous: one changed word makes another application."""
    (project / "retail.toml").write_text(TOML)
    (project / "other.toml").write_text(TOML.replace('ttl = "90d"', 'ttl = "91d"'))
    assert load("retail.toml").app != load("other.toml").app


def test_settings_in_the_file_are_relative_to_it(project, monkeypatch):
    """Addresses and the store are counted from the file, wherever one stands."""
    (project / "retail.toml").write_text(TOML)
    monkeypatch.chdir(project.parent)
    target = load(f"{project.name}/retail.toml")
    assert target.toml == target.app.settings
    assert target.toml == {
        "sources": {"checkins": f"json:{project}/data/checkins"},
        "sinks": {"hot": f"parquet:{project}/out/hot", "late": f"json:{project}/out/late"},
        "shards": 4,
        "batch_bytes": "1MiB",  # parsed with what is given elsewhere
        "store": project / "kept",
        "available_now": True,
    }


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        (
            'subscribes = ["visits"]',
            'subscibes = ["visits"]',
            "subscibes",
            "unknown key 'subscibes' in [maps.see]; did you mean 'subscribes'?",
        ),
        (
            "[updates.count]",
            "[update.count]",
            "[update.count]",
            "unknown table [update]; did you mean 'updates'?",
        ),
        (
            "shards = 4",
            "sharts = 4",
            "sharts",
            "unknown key 'sharts' in [run]; did you mean 'shards'?",
        ),
        (
            "shards = 4",
            "shards = 0",
            "shards",
            "'shards' in [run] must be a whole number from 1 to 1024; got 0",
        ),
        (
            "shards = 4",
            'shards = "4x"',
            "shards",
            "must be a whole number from 1 to 1024; got '4x'",
        ),
        (
            'ttl = "90d"',
            "ttl = 90",
            "ttl",
            "'ttl' in [updates.count] must be text; got a whole number 90",
        ),
        (
            'ttl = "90d"',
            'ttl = "ninety"',
            'ttl = "ninety"',
            "ttl must be a duration such as '90d'",
        ),
        ('name = "retail"', "", "[app]", "[app] needs 'name'"),
        (
            'order = "event-time"',
            'order = "eventtime"',
            "order",
            "must be 'arrival' or 'event-time'",
        ),
        ('subscribes = ["visits"]', "", "[maps.see]", "[maps.see] needs 'subscribes'"),
        ('subscribes = ["visits"]', 'subscribes = ["visit"]', 'visit"]', "did you mean 'visits'?"),
        (
            'subscribes = ["visits"]',
            "subscribes = [1]",
            "[1]",
            "must hold texts; got a whole number 1",
        ),
        ('"functions:flush"', '"functions:flsh"', "flsh", "has no 'flsh'; did you mean 'flush'?"),
        ('"functions:flush"', '"function:flush"', "on_timer", "no module 'function' in "),
        ('"functions:flush"', '"flush"', "on_timer", "must be 'module:name'; got 'flush'"),
        (
            '"functions:flush"',
            '"functions:recognise"',
            "[updates.count]",
            "must take (timer, slate)",
        ),
        ('slate = "table"', 'slate = "tabel"', "tabel", "did you mean 'table'?"),
        (
            'slate = "table"',
            'slate = "functions:count"',
            'slate = "functions:count"',
            "a dataclass",
        ),
        ('delay = "10s"', 'key = "x"', 'key = "x"', "'key' in [streams.again] is for a source"),
        ("output = true", "output = false", 'sink = "parquet', "so it must be an output"),
        ('"json:data/checkins"', '"data/checkins"', "data/checkins", "without a colon"),
        ('"json:data/checkins"', '"jsn:data/checkins"', "jsn:", "did you mean json:data/checkins?"),
        (
            '"parquet:out/hot"',
            '"csv:o"',
            'sink = "csv',
            "one of json, parquet, log, sqlite",
        ),
        ('"parquet:out/hot"', "1", "sink = 1", "'sink' in [streams.hot] must be text"),
        ("[run]", "[run]\n[[maps.twice]]", "[[maps.twice]]", "[maps.twice] must be a table"),
        ("[maps.see]", '[maps."s!e"]', '[maps."s!e"]', "map name 's!e' must start with a letter"),
    ],
)
def test_a_mistake_is_named_with_its_line(project, old, new, at, message):
    """Each mistake in the file is refused with its line and advice."""
    error = edited(project, old, new)
    assert message in error
    assert error.startswith(f"retail.toml:{line_of(project, at)}: "), error


def test_a_syntax_error_has_its_line(project):
    """Invalid TOML is refused with the line, at the end of the file too."""
    error = edited(project, "shards = 4", "shards = = 4")
    assert error.startswith(f"retail.toml:{line_of(project, '= = 4')}: not valid TOML: ")
    (project / "open.toml").write_text("[app]\nname = [\n")
    assert refused("open.toml").startswith("open.toml:2: not valid TOML: ")
    (project / "latin.toml").write_bytes(b'[app]\nname = "\xe9"\n')
    assert refused("latin.toml") == "latin.toml:2: a TOML file must be UTF-8 text"


def test_lines_are_right_after_odd_text(project):
    """Multi-line strings, quoted and dotted keys and inline tables do not confuse the lines."""
    (project / "odd.toml").write_text(
        'app.name = """\\\n   retail"""\n'
        "app.\"order\" = '''arrival'''  # [maps.not_a_table]\n"
        "[streams]\n"
        '"checkins" = {source = true, ts = "a\\"]}", '
        'key = "k"}\n'
        "[maps]\n"
        "see.function = 'functions:recognise'\n"
        "see.subscribes = ['checkins',\n  '''x\n[maps.y]''']\n"
        "see.publish = 1\n"
    )
    assert refused("odd.toml").startswith("odd.toml:11: unknown key 'publish' in [maps.see]")


def test_the_error_in_a_module_shows_the_users_line(project):
    """An exception while the user's module is imported names the user's file and line, not ours."""
    (project / "helper.py").write_text("import json\n\ndef go():\n    json.loads('x')\n")
    (project / "bad.py").write_text("import helper\nhelper.go()\n")
    assert refused("bad.py").startswith("helper.py:4: JSONDecodeError: ")
    (project / "bad2.py").write_text("import millstream as ms\n\nx = ms.App('9')\n")
    assert refused("bad2.py").startswith("bad2.py:3: app name '9' must start with a letter")
    (project / "bad3.py").write_text("def f(:\n  pass\n")
    assert refused("bad3.py").startswith("bad3.py:1: SyntaxError: ")
    (project / "bad4.py").write_text("\nimport nowhere_at_all\n")
    assert refused("bad4.py") == "bad4.py:2: ModuleNotFoundError: No module named 'nowhere_at_all'"
    assert refused("bad4:app") == refused("bad4.py")
    assert edited(project, "functions:flush", "bad4:flush") == refused("bad4.py")
    (project / "bad5.py").write_text("raise SystemExit(3)\n")
    assert refused("bad5.py") == "bad5.py:1: the module exits: 3"
    assert "bad" not in sys.modules


def test_run_at_import_is_refused(project):
    """An app.run() that is not under __main__ does not start a run while the file is loaded."""
    (project / "eager.py").write_text(DECORATED + "\napp.run()\n")
    error = refused("eager.py")
    assert error.startswith(f"eager.py:{DECORATED.count(chr(10)) + 2}: app.run() was called while")


def test_targets(project):
    """A target is app.py, app.py:name, module, module:name or app.toml."""
    (project / "decorated.py").write_text(DECORATED)
    app = load("decorated.py").app
    assert app is load("decorated.py:app").app is load("decorated").app is load("decorated:app").app
    assert app is load(str(project / "decorated.py")).app
    assert sys.modules["decorated"].app is app
    assert sys.path[0] == str(project)


def test_a_package_is_a_module(project):
    """A directory with __init__.py is a package, and may be named as a module."""
    (project / "shop").mkdir()
    (project / "shop" / "__init__.py").write_text("import millstream as ms\na = ms.App('shop')\n")
    assert load("shop:a").app.name == "shop"


def test_two_files_of_one_name(project):
    """Another file of the same stem is another module, not the one loaded before."""
    for place in ("one", "two"):
        (project / place).mkdir()
        (project / place / "main.py").write_text(
            f"import millstream as ms\na = ms.App('{place}')\n"
        )
    assert [load(f"{place}/main.py").app.name for place in ("one", "two")] == ["one", "two"]


def test_several_apps_in_a_module(project):
    """The only App of a module is taken; of several, one must be named."""
    (project / "many.py").write_text(
        "import millstream as ms\na = ms.App('a')\nb = ms.App('b')\nc = 1\n"
    )
    assert refused("many.py") == "many.py has several Apps: a, b; name one, as in many.py:a"
    assert load("many.py:b").app.name == "b"
    assert refused("many.py:aa") == "many.py has no App 'aa'; did you mean 'a'?"
    assert refused("many.py:c") == "many.py: 'c' is a int, not an App; there are: a, b"
    assert "has no App" in refused("functions.py")


def test_targets_that_are_not_there(project):
    """A target that names nothing is refused with what is near."""
    assert (
        refused("function.py")
        == "no file 'function.py' (looked in .); did you mean 'functions.py'?"
    )
    assert refused("nowhere.at").startswith(
        "no module 'nowhere.at' in . or on sys.path; name a file"
    )
    assert "is a directory; name the application's file in it" in refused(str(project))
    assert "leave out :app" in refused("retail.toml:app")


def test_a_file_may_not_hide_a_library(project):
    """A file named as a library would hide it from Spark's workers: refused."""
    (project / "json.py").write_text("")
    assert "'json' cannot be one" in refused("json.py")
    (project / "pytest.py").write_text("")
    assert "another module 'pytest' is already imported" in refused("pytest.py")


def test_the_place_is_given_once(project):
    """An error that names its function's place is not put to the same place again."""
    (project / "badttl.py").write_text(
        "import millstream as ms\napp = ms.App('a')\napp.source('in')\n"
        "@app.update('in', ttl='x')\ndef f(event, slate): pass\n"
    )
    assert refused("badttl.py").startswith("badttl.py:4: update 'f': ttl must be a duration")
