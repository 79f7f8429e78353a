"""`millstream slates` over a real store."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from millstream_store import make_store

from millstream.spark.dump import Dumped

SLATES = {"Walmart": {"count": 2}, "Best Buy": {"count": 1}, "Wendy's": {"count": 5}}


@pytest.fixture
def store(here) -> Path:
    make_store(here / ".millstream" / "retail", SLATES)
    return here / ".millstream" / "retail"


def test_get(millstream, store):
    """A slate is JSON on stdout, and nothing else is."""
    result = millstream("slates", "get", "count", "Walmart")
    assert (result.exit_code, result.stdout, result.stderr) == (0, '{"count":2}\n', "")


def test_get_of_an_unknown_key(millstream, store):
    """No slate: exit 1, nothing on stdout, and a message."""
    result = millstream("slates", "get", "count", "Target")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "update 'count' has no slate for key 'Target'\n"


def test_an_unknown_update(millstream, store):
    """The nearest update is named."""
    result = millstream("slates", "get", "coutn", "Walmart")
    assert result.exit_code == 2
    assert "no slates of update 'coutn'; did you mean 'count'?" in result.stderr


def test_scan(millstream, store):
    """Slates come in key order, one JSON object a line, by prefix and in pages."""

    def keys(*words: str) -> list[str]:
        lines = millstream("slates", "scan", "count", *words).stdout.splitlines()
        return [json.loads(line)["key"] for line in lines]

    assert keys() == sorted(SLATES)
    assert keys("--prefix", "W") == ["Walmart", "Wendy's"]
    assert keys("--after", "Best Buy", "--limit", "1") == ["Walmart"]
    page = millstream("slates", "scan", "count", "--limit", "1")
    assert json.loads(page.stdout) == {"key": "Best Buy", "slate": {"count": 1}, "ts": 1}
    assert "there are more: go on with --after 'Best Buy', or give a higher --limit" in page.stderr
    assert millstream("slates", "scan", "count", "--limit", str(len(SLATES))).stderr == ""


def test_which_store(millstream, store, here, monkeypatch):
    """The store is --store, --app's, MILLSTREAM_STORE or the only one here; of several, none."""
    make_store(here / "elsewhere", {"Walmart": {"count": 9}})
    get = ("slates", "get", "count", "Walmart")
    assert millstream(*get, "--store", "elsewhere").stdout == '{"count":9}\n'
    assert millstream(*get, "--store", "nowhere").exit_code == 1
    make_store(here / ".millstream" / "second", {"Walmart": {"count": 7}}, app="second")
    result = millstream(*get)
    assert result.exit_code == 2
    assert "several stores" in result.stderr
    assert millstream("new", "second").exit_code == 0
    assert millstream(*get, "--app", "second/app.py").stdout == '{"count":7}\n'
    assert millstream(*get, "--app", "second/app.py", "--store", "x").exit_code == 2
    monkeypatch.setenv("MILLSTREAM_STORE", "elsewhere")
    assert millstream(*get).stdout == '{"count":9}\n'


def test_folders_that_are_no_stores(millstream, store, here):
    """The folder where agents keep their state is beside the stores, and is none; alone, it is as
    if there were nothing."""
    (here / ".millstream" / "agents" / "errors-web1").mkdir(parents=True)
    assert millstream("slates", "get", "count", "Walmart").exit_code == 0
    for command in ("verify", "jobs"):
        assert "stores" not in millstream(command).stderr
    for name in ("store.json", "lock"):
        (store / name).unlink(missing_ok=True)
    assert "no store under ./.millstream" in millstream("verify").stderr


def test_no_store(millstream):
    """Without any store: exit 1 and what to do."""
    result = millstream("slates", "get", "count", "Walmart")
    assert result.exit_code == 1
    assert "no store under ./.millstream" in result.stderr


def test_dump_to_json_lines(millstream, store, here):
    """A dump has every slate in key order, and nothing else is left."""
    assert millstream("slates", "dump", "count", "--to", "jsonl:out.jsonl").exit_code == 0
    lines = (here / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["slate"] for line in lines] == [SLATES[key] for key in sorted(SLATES)]
    assert millstream("slates", "dump", "top", "--to", "jsonl:dir").exit_code == 0
    assert (here / "dir" / "top.jsonl").read_text() == ""
    assert [path.name for path in here.glob("**/.*unfinished")] == []


@pytest.mark.parametrize("rows", [1, 2, 3, 10_000])
def test_dump_to_parquet(millstream, store, here, monkeypatch, rows):
    """Parquet holds the key, the slate as JSON text and the time, however many chunks it takes."""
    monkeypatch.setattr("millstream.sinks.slate_files.ROWS", rows)
    assert millstream("slates", "dump", "count", "--to", "parquet:out").exit_code == 0
    found = pq.read_table(here / "out").to_pylist()
    assert [row["key"] for row in found] == sorted(SLATES)
    assert json.loads(found[1]["slate"]) == {"count": 2}


def test_dump_replaces_only_when_told(millstream, store, here):
    """An earlier dump is kept unless --overwrite is said; a wrong format is refused."""
    dump = ("slates", "dump", "count", "--to", "jsonl:out.jsonl")
    (here / "out.jsonl").write_text("mine")
    assert millstream(*dump).exit_code == 2
    assert (here / "out.jsonl").read_text() == "mine"
    assert millstream(*dump, "--overwrite").exit_code == 0
    assert millstream("slates", "dump", "count", "--to", "xml:out").exit_code == 2


def test_a_dump_in_parts_is_a_dump_too(millstream, store, here):
    """An earlier dump in parts, which stands beside the file's place, is kept or replaced as a file
    is; a folder of that name that holds anything else is never touched."""
    dump = ("slates", "dump", "count", "--to", "parquet:out")
    (here / "out" / "count").mkdir(parents=True)
    (here / "out" / "count" / "part-00000.parquet").write_text("earlier")
    assert millstream(*dump).exit_code == 2
    assert millstream(*dump, "--overwrite").exit_code == 0
    assert [path.name for path in (here / "out").iterdir()] == ["count.parquet"]
    (here / "out" / "count").mkdir()
    (here / "out" / "count" / "thesis.doc").write_text("mine")
    refused = millstream(*dump, "--overwrite")
    assert refused.exit_code == 2
    assert "is not a dump" in refused.stderr
    assert (here / "out" / "count" / "thesis.doc").read_text() == "mine"


def test_which_way_a_dump_goes(millstream, store, monkeypatch):
    """A large store goes through Spark unless told otherwise or to one file; asked to write one
    file through Spark, the command refuses."""
    dump, asked = ("slates", "dump", "count", "--to"), []
    assert millstream(*dump, "jsonl:a.jsonl", "--spark").exit_code == 2
    monkeypatch.setattr("millstream.cli.dump.LARGE_BYTES", 0)
    monkeypatch.setattr(
        "millstream.cli.dump.write_parts",
        lambda store, update, place: asked.append(place.folder.name) or Dumped(0, 3, 2),
    )
    said = millstream(*dump, "parquet:b").stderr
    assert (asked, said) == (["count"], "wrote 3 slates to b/count (2 parts)\n")
    assert millstream(*dump, "parquet:c", "--no-spark").exit_code == 0
    assert millstream(*dump, "jsonl:d.jsonl").exit_code == 0
    assert asked == ["count"]
