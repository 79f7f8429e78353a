"""`millstream plan` says what a run with the same options would refuse, and exits likewise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from millstream.cli.main import main
from millstream.driver.in_process import run
from millstream.errors import MillstreamError
from millstream.log.writer import Entry, LogWriter
from millstream.modules import import_file
from millstream.settings.settings import Settings, resolve

APP = """
import millstream as ms

app = ms.App("shop")
app.source("buys", key="user")


@app.update("buys")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + 1
"""


@pytest.fixture(params=["local", "shared"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with 2 shards whose source has read a folder of JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    for name in ("in", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.json").write_text(json.dumps({"user": "ann"}) + "\n")
    named = "store" if request.param == "local" else f"shared:{tmp_path / 'place'}"
    run(import_file(tmp_path / "app.py").app, given(named, {"buys": "json:in"}, shards=2))
    return named


def given(store: str, sources: dict[str, str], **more: Any) -> Settings:
    app = import_file(Path("app.py")).app
    flags = {"store": store, "sources": sources, "available_now": True, "cache": "cache", **more}
    return resolve(app, None, {}, flags)


def plan(store: str, *words: str) -> tuple[int, str]:
    """The exit code of the command, and what it prints."""
    result = CliRunner().invoke(main, ["plan", "app.py", "--store", store, *words])
    return result.exit_code, result.output


def test_what_a_run_takes_is_no_refusal(store: str) -> None:
    """With the address and the number of shards that the store has."""
    code, text = plan(store, "--source", "buys=json:in", "--shards", "2")
    assert (code, "nothing is lost" in text) == (0, True), text
    code, text = plan(store, "--source", "buys=json:other")
    assert code == 0, text


@pytest.mark.parametrize(
    ("address", "shards", "reason"),
    [
        ("json:in", 8, "this run asks for 8"),
        ("log", 2, "this source has read json files until now"),
        ("csv:in", 2, "this source has read json files until now"),
        ("json:gone", 2, "it does not exist: make it"),
        ("kafka:buys?servers=localhost:1", 2, "this source has read json until now"),
    ],
)
def test_what_a_run_refuses_is_in_the_plan(
    store: str, address: str, shards: int, reason: str
) -> None:
    """With the reason that the run gives, and with exit code 1; nothing is changed by asking."""
    code, text = plan(store, "--source", f"buys={address}", "--shards", str(shards))
    assert code == 1
    assert reason in text
    assert "1 reason for which `run` does not start, whatever is accepted" in text
    settings, app = given(store, {"buys": address}, shards=shards), import_file(Path("app.py")).app
    with pytest.raises(MillstreamError, match=reason):
        run(app, settings)
    assert plan(store, "--source", "buys=json:in")[0] == 0


def test_the_lines_of_json_have_it_too(store: str) -> None:
    """As a loss with the state `refused`; each reason is one line."""
    result = CliRunner().invoke(
        main, ["plan", "app.py", "--store", store, "--shards", "8", "--json"]
    )
    found = [json.loads(line) for line in result.stdout.splitlines()]
    refused = [(one["subject"], one["name"]) for one in found if one["state"] == "refused"]
    assert refused == [("store", "shop"), ("source", "buys")]
    assert all("/tmp/millstream-" not in one["text"] for one in found)
    assert result.exit_code == 1


def test_a_log_that_is_not_the_one_that_was_read(store: str, tmp_path: Path) -> None:
    """A source that goes on in another log than the one that it has read is refused."""
    app = import_file(Path("app.py")).app
    fresh = "fresh" if store == "store" else f"shared:{tmp_path / 'fresh'}"
    for name in ("one", "two"):
        writer = LogWriter(tmp_path / name)
        writer.append([Entry.of([b'{"user":"ann"}'])])
        writer.close()
    run(app, given(fresh, {"buys": f"log:{tmp_path / 'one'}"}, shards=2))
    code, _ = plan(fresh, "--source", f"buys=log:{tmp_path / 'one'}")
    assert code == 0
    code, text = plan(fresh, "--source", f"buys=log:{tmp_path / 'two'}")
    assert (code, "its log does not know that it was read" in text) == (1, True)
    assert plan(fresh, "--source", "buys=log")[0] == 1
