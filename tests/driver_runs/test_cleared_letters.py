"""Letters that were removed: the store goes on, and later letters can be retried."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import millstream as ms
from millstream.cli.main import main
from millstream.description import describe, write_description
from millstream.driver.in_process import run
from millstream.driver.report import RunSummary
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.writer import LogWriter
from millstream.settings.settings import Settings
from millstream.stores.home import Home
from millstream.verifying.store import verify

BROKEN: set[Any] = set()
"""Values that the update cannot process for now."""


@pytest.fixture(autouse=True)
def _mended() -> Iterator[None]:
    BROKEN.clear()
    yield
    BROKEN.clear()


def shop() -> ms.App:
    app = ms.App("shop")
    app.source("buys", key="user", ts="ts", unit="us")

    @app.update("buys")
    def score(event: Any, slate: Any) -> None:
        if event.value["n"] in BROKEN:
            raise KeyError(event.value["n"])
        slate.setdefault("seen", []).append(event.value["n"])

    return app


def go(tmp_path: Path, *numbers: int, kind: str = "local") -> RunSummary:
    """A run over one more file."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"user": "ann", "ts": n, "n": n}) + "\n" for n in numbers]
    if lines:
        (folder / f"{len([*folder.iterdir()])}.json").write_text("".join(lines))
    more: dict[str, Any] = {}
    if kind == "shared":
        more = {"place": f"shared:{tmp_path / 'place'}", "cache": str(tmp_path / "cache")}
    settings = Settings.of(
        "shop",
        tmp_path / "store",
        {"buys": f"json:{folder}"},
        available_now=True,
        shards=1,
        check_store=False,
        **more,
    )
    return run(shop(), settings)


def letters(tmp_path: Path, *words: str, kind: str = "local") -> Result:
    """The result of `millstream deadletters`."""
    store = f"shared:{tmp_path / 'place'}" if kind == "shared" else str(tmp_path / "store")
    result = CliRunner().invoke(main, ["deadletters", *words, "--store", store])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_a_store_goes_on_after_its_letters_were_removed(tmp_path: Path, kind: str) -> None:
    """Also when the last batch had some; new letters have new numbers, and each can be retried."""
    BROKEN.update({1, 2, 7})
    go(tmp_path, 0, 1, 2, kind=kind)
    assert "2 dead letters are retried" in letters(tmp_path, "retry", kind=kind).stdout
    dry = letters(tmp_path, "clear", "--dry-run", kind=kind)
    assert dry.stdout == "2 dead letters would be removed\n"
    assert letters(tmp_path, "clear", kind=kind).stdout == "2 dead letters are removed\n"
    assert letters(tmp_path, kind=kind).stderr.splitlines()[-1] == "no dead letters"
    assert letters(tmp_path, "clear", kind=kind).stdout == "0 dead letters are removed\n"
    BROKEN.difference_update({1, 2})
    summary = go(tmp_path, 7, kind=kind)
    assert (summary.retried, summary.dead_letters) == (2, 1)
    listed = letters(tmp_path, "--json", kind=kind).stdout.splitlines()
    assert [json.loads(line)["value"]["n"] for line in listed] == [7]
    BROKEN.clear()
    assert letters(tmp_path, "retry", kind=kind).stdout == "1 dead letter is retried\n"
    assert go(tmp_path, kind=kind).retried == 1
    if kind == "local":
        write_description(tmp_path / "store", describe(shop().checked(), {"buys": "json:in"}))
        assert verify(tmp_path / "store").faults == []


def test_numbers_go_on_in_the_log(tmp_path: Path) -> None:
    """The next letter has the number after the last one that ever was."""
    BROKEN.update({1, 2})
    go(tmp_path, 1, 2)
    letters(tmp_path, "clear")
    go(tmp_path, 2)
    with closing(LogReader(tmp_path / "store" / "logs" / "deadletters")) as reader:
        assert (reader.start[1], reader.end[1]) == (2, 3)


def test_letters_that_another_application_reads_stay_until_it_has(tmp_path: Path) -> None:
    """As with retention; the command says how many."""
    BROKEN.add(1)
    go(tmp_path, 1)
    folder = tmp_path / "store" / "logs" / "deadletters"
    with closing(LogReader(folder)) as reader:
        reader.commit("other", [0, 0])
        result = letters(tmp_path, "clear")
        assert result.stdout == "0 dead letters are removed\n"
        assert "1 is kept: another application has yet to read" in result.stderr
        reader.reload()
        reader.commit("other", reader.end)
    assert letters(tmp_path, "clear").stdout == "1 dead letter is removed\n"


def test_while_the_application_runs_its_letters_stay(tmp_path: Path) -> None:
    """The driver holds its logs; the command says who must be stopped."""
    BROKEN.add(1)
    go(tmp_path, 1)
    folder = Home.open(tmp_path / "store").log_of("deadletters")
    with closing(LogWriter(folder, retention=Retention(None, None))):
        result = CliRunner().invoke(
            main, ["deadletters", "clear", "--store", str(tmp_path / "store")]
        )
    assert result.exit_code == 1
    assert "another process writes to it" in result.stderr
    assert "KeyError: 1" in letters(tmp_path).stdout
