"""`verify` names the files outside of the store that it wrote or reads, if they are gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import millstream as ms
from millstream.cli.main import main
from millstream.driver.in_process import run
from millstream.log.writer import Entry, LogWriter
from millstream.service.app_description import describe_app
from millstream.settings.settings import Settings
from millstream.verifying.store import verify


def application() -> ms.App:
    app = ms.App("shop")
    app.source("sales", key="k", ts="t", unit="us")
    app.output("seen")
    app.output("unused")
    app.changes("total")

    @app.map("sales", publishes=("seen", "unused"))
    def see(event: Any) -> Any:
        yield ms.emit("seen", value=event.value)

    @app.update("sales")
    def total(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1

    return app


def filled(root: Path, **sinks: str) -> Path:
    """Runs over one file of two events; returns the store."""
    (root / "in").mkdir()
    lines = [json.dumps({"k": "ann", "t": at}) + "\n" for at in range(2)]
    (root / "in" / "a.json").write_text("".join(lines))
    app, store = application(), root / "store"
    settings = Settings.of(
        "shop", store, {"sales": f"json:{root / 'in'}"}, sinks, available_now=True
    )
    run(app, settings)
    describe_app(app, settings)
    return store


@pytest.mark.parametrize("form", ["json", "parquet", "log", "sqlite"])
@pytest.mark.parametrize("name", ["seen", "total.changes"])
def test_an_output_that_is_gone(tmp_path: Path, form: str, name: str) -> None:
    """The folder or file of a sink is named, with what to do, and the command ends with 1."""
    out = tmp_path / "out"
    store = filled(tmp_path, **{name: f"{form}:{out}"})
    assert verify(store).faults == []
    (out.unlink if form == "sqlite" else lambda: shutil.rmtree(out))()
    (finding,) = verify(store).faults
    assert finding.file == str(out)
    assert finding.wrong == f"is missing, and output of {name!r} was written to it"
    assert "restore it from a copy" in finding.repair
    result = CliRunner().invoke(main, ["verify", "--store", str(store)])
    assert result.exit_code == 1
    assert f"{out}: is missing" in result.output


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_an_output_file_that_was_cut_or_taken(tmp_path: Path, form: str) -> None:
    """A file that is shorter than it was is named; one that somebody has taken away is not."""
    out = tmp_path / "out"
    store = filled(tmp_path, seen=f"{form}:{out}")
    (file,) = out.glob("part-*")
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(size - 1)
    (finding,) = verify(store).faults
    assert finding.file == str(file)
    assert f"must have {size:,} bytes, as published; it has {size - 1:,}" in finding.wrong
    file.unlink()
    assert verify(store).faults == []


def test_a_damaged_record_of_an_output(tmp_path: Path) -> None:
    """Without the hidden record a repeat would not be harmless: a damaged one is named."""
    out = tmp_path / "out"
    store = filled(tmp_path, seen=f"json:{out}")
    (record,) = out.glob(".millstream-*.json")
    record.write_text("{")
    (finding,) = verify(store).faults
    assert finding.file == str(record)


def test_an_output_without_any_event(tmp_path: Path) -> None:
    """Where nothing was written, nothing is missing."""
    store = filled(tmp_path, unused=f"json:{tmp_path / 'out'}")
    shutil.rmtree(tmp_path / "out")
    assert verify(store).faults == []


def test_an_output_log_of_the_store_that_is_gone(tmp_path: Path) -> None:
    """The event log of an output is named, with the number of records that it had."""
    store = filled(tmp_path)
    shutil.rmtree(store / "logs" / "seen")
    (finding,) = verify(store).faults
    assert finding.file == str(store / "logs" / "seen")
    assert finding.wrong == "is missing, and 2 records were written to it"


def test_the_log_of_a_source_that_is_gone(tmp_path: Path) -> None:
    """The log of a source that was read is named; so is the application's place among its readers.

    And the command ends with 1.
    """
    store = tmp_path / "store"
    app, settings = application(), Settings.of("shop", store, {"sales": "log"}, available_now=True)
    log = store / "logs" / "sales"
    writer = LogWriter(log)
    writer.append([Entry.of([b'{"k":"ann","t":1}'])])
    writer.close()
    run(app, settings)
    describe_app(app, settings)
    assert verify(store).faults == []
    (reader,) = (log / "readers").glob("[!.]*.json")
    reader.unlink()
    (finding,) = verify(store).faults
    assert finding.file == str(reader)
    shutil.rmtree(log)
    (finding,) = verify(store).faults
    assert finding.file == str(log)
    assert finding.wrong == "is missing, and records of the source were taken from it"
    result = CliRunner().invoke(main, ["verify", "--store", str(store)])
    assert result.exit_code == 1
    assert f"{log}: is missing" in result.output
