"""Files of every form through whole runs: each record once, over batches and restarts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from driver_runs.harness import kept_rows

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.driver.in_process import run
from millstream.driver.report import RunSummary
from millstream.settings.settings import Settings, resolve
from millstream.stores.reader import SlateReader


def counting(key: str, **said: Any) -> ms.App:
    app = ms.App("counting")
    app.source("given", key=key, **said)

    @app.update("given")
    def count(event: Any, slate: Any) -> None:
        slate["count"] = slate.get("count", 0) + 1
        slate["value"] = event.value

    return app


def ran(app: ms.App, folder: Path, form: str, **more: Any) -> RunSummary:
    address = {"given": f"{form}:{folder / 'in'}"}
    given = {"available_now": True, "shards": 2, **more}
    return run(app, Settings.of("counting", folder / "store", address, **given))


def counts(folder: Path) -> dict[str, int]:
    with SlateReader(folder / "store") as reader:
        return {slate.key: slate.value["count"] for slate in reader.scan("count")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


def test_a_torn_gzip_that_is_written_again_counts_once(folder: Path) -> None:
    """As its dead letter advises: whole, under a new name; the run may have ended in between."""
    data = gzip.compress(b"".join(b'{"k": "%d"}\n' % (n % 3) for n in range(30_000)))
    (folder / "in" / "a.jsonl.gz").write_bytes(data[:-1000])
    app = counting("k")
    assert ran(app, folder, "json").dead_letters == 1
    (letter,) = kept_rows(folder / "store", "deadletters")
    assert letter["line"] == 0
    assert "under a new name" in letter["error"]
    assert counts(folder) == {}
    (folder / "in" / "a.jsonl.gz").write_bytes(data)
    ran(app, folder, "json")
    assert counts(folder) == {}  # a file is taken once, by its path
    (folder / "in" / "b.jsonl.gz").write_bytes(data)
    ran(app, folder, "json")
    assert counts(folder) == {"0": 10_000, "1": 10_000, "2": 10_000}


@pytest.mark.parametrize("batch_bytes", [1, 40, 1 << 20])
def test_records_of_several_lines_over_small_batches(folder: Path, batch_bytes: int) -> None:
    """Wherever batches and splits end, each record is whole and comes once, also over two runs."""
    lines = [f"{n:02} failed\n  at f{n}\n\n  at g\n" for n in range(30)]
    (folder / "in" / "a.log").write_text("".join(lines))
    app = counting("n", pattern=r"(?P<n>\d\d) (?P<text>(?s:.*))", starts=r"\d\d ")
    assert ran(app, folder, "text", batch_bytes=batch_bytes).dead_letters == 0
    (folder / "in" / "b.log").write_text("".join(lines[:5]))
    ran(app, folder, "text", batch_bytes=batch_bytes)
    assert counts(folder) == {f"{n:02}": 2 if n < 5 else 1 for n in range(30)}
    with SlateReader(folder / "store") as reader:
        found = reader.get("count", "07")
    assert found is not None
    assert found.value["value"]["text"] == "failed\n  at f7\n\n  at g"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_as_a_file(folder: Path, indent: int | None) -> None:
    """Its elements are the records, in as many batches as there are files."""
    for name in "ab":
        text = json.dumps([{"k": name, "n": n} for n in range(50)], indent=indent)
        (folder / "in" / f"{name}.json").write_text(text)
    assert ran(counting("k"), folder, "json", batch_bytes=1).dead_letters == 0
    assert counts(folder) == {"a": 50, "b": 50}


def test_all_of_it_in_a_file(folder: Path) -> None:
    """All options of a source are available in TOML too, and give the same application."""
    (folder / "app.toml").write_text(
        r"""
[app]
name = "counting"

[streams.text]
source = "text:in"
key = "host"
ts = "at"
unit = "s"
ahead = "2d"
jump = "3h"
lateness = "1m"
pattern = '(?P<host>\S+) (?P<at>\d+) (?P<rest>(?s:.*))'
starts = '\S+ \d+ '
encoding = "latin-1"

[streams.rows]
source = "csv:in"
delimiter = "\t"
encoding = "utf-16"

[elements.count]
element = "count"
keys = ["text", "rows"]
"""
    )
    app = ms.App("counting")
    app.source(
        "text",
        key="host",
        ts="at",
        unit="s",
        ahead="2d",
        jump="3h",
        lateness="1m",
        pattern=r"(?P<host>\S+) (?P<at>\d+) (?P<rest>(?s:.*))",
        starts=r"\S+ \d+ ",
        encoding="latin-1",
    )
    app.source("rows", delimiter="\t", encoding="utf-16")
    app.add(ms.elements.Count(), name="count", keys=["text", "rows"])
    found, given = read_app(folder / "app.toml")
    assert found == app
    assert resolve(found, given).addresses.sources["rows"].startswith("csv:")


def test_rows_in_latin_1_with_semicolons(folder: Path) -> None:
    """A stray quote costs its row, and nothing else of the file."""
    text = 'name;n\nZoë;1\nZoë;"2\nAnn;3\n'
    (folder / "in" / "a.csv").write_bytes(text.encode("latin-1"))
    app = counting("name", encoding="latin-1", delimiter=";")
    assert ran(app, folder, "csv").dead_letters == 1
    assert counts(folder) == {"Zoë": 1, "Ann": 1}
    (letter,) = kept_rows(folder / "store", "deadletters")
    assert (letter["line"], letter["value"]) == (3, 'Zoë;"2\n')
    assert "a quote that is never closed: it opens in line 3, column 5" in letter["error"]
