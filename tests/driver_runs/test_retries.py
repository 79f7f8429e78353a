"""Letters that are retried: each once, to whom it is owed, and accounted for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.cli.main import main
from millstream.description import describe, write_description
from millstream.driver.in_process import run
from millstream.letters.retry_log import retry_letters
from millstream.letters.selection import LetterFilter
from millstream.log.stream_logs import FolderLogs, PlaceLogs
from millstream.places.place_address import place_at
from millstream.settings.settings import Settings
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader
from millstream.stores.soft import read_committed

BROKEN: set[Any] = set()
"""Values that the update cannot process for now."""


@pytest.fixture(autouse=True)
def _mended() -> Any:
    BROKEN.clear()
    yield
    BROKEN.clear()


def shop(**source: Any) -> ms.App:
    """Returns an application whose stream has two readers: one fails on broken events, the other
    never."""
    app = ms.App("shop", order=source.pop("order", "arrival"))
    app.source("buys", **{"key": "user", "ts": "ts", "unit": "us", **source})

    @app.update("buys")
    def score(event: Any, slate: Any) -> None:
        if event.value["n"] in BROKEN:
            raise KeyError(event.value["n"])
        slate.setdefault("seen", []).append(event.value["n"])

    @app.update("buys")
    def count(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1

    return app


def settings(tmp_path: Path, **more: Any) -> Settings:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    given = {"available_now": True, "shards": 2, "check_store": False, **more}
    store = given.pop("store", tmp_path / "store")
    return Settings.of("shop", store, {"buys": f"json:{folder}"}, **given)


def put(tmp_path: Path, *records: dict[str, Any]) -> None:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(one) + "\n" for one in records)
    (folder / f"{len(list(folder.iterdir()))}.json").write_text(lines)


def buys(first: int, last: int) -> list[dict[str, Any]]:
    return [{"user": "ann", "ts": n, "n": n} for n in range(first, last)]


def slate(tmp_path: Path, update: str, key: str = "ann") -> Any:
    with SlateReader(tmp_path / "store") as reader:
        found = reader.get(update, key)
        return None if found is None else found.value


def balanced(store: Path) -> Progress:
    """The progress, once every delivery is accounted for."""
    progress = read_committed(store)
    for name in progress.functions:
        assert progress.counts(name).residual == 0, name
    return progress


def retry(tmp_path: Path, **wanted: Any) -> tuple[int, int]:
    overflows = {"score": ("spilt", "buys")}
    logs = FolderLogs(tmp_path / "store" / "logs")
    outcome = retry_letters(logs, LetterFilter(**wanted), overflows)
    return outcome.given, outcome.before


def test_a_dead_letter_goes_to_the_function_that_failed_once(tmp_path: Path) -> None:
    """Other readers of the stream have processed the event already. A second request does not
    deliver it again. A retried event that fails again is a new letter. Every delivery is
    counted."""
    BROKEN.update({1, 2})
    put(tmp_path, *buys(0, 4))
    run(shop(), settings(tmp_path))
    assert slate(tmp_path, "score") == {"seen": [0, 3]}
    BROKEN.discard(1)
    assert retry(tmp_path, dry_run=True) == (2, 0)
    assert retry(tmp_path, function="count") == (0, 0)
    assert retry(tmp_path, error="KeyError") == (2, 0)
    assert retry(tmp_path) == (0, 2)
    again = run(shop(), settings(tmp_path))
    assert (again.events, again.retried, again.dead_letters) == (0, 2, 1)
    assert slate(tmp_path, "score") == {"seen": [0, 3, 1]}
    assert slate(tmp_path, "count") == {"n": 4}
    progress = balanced(tmp_path / "store")
    assert progress.counts("score").retried == 2
    assert progress.counts("score").dead_letters == 3
    BROKEN.clear()
    assert retry(tmp_path) == (1, 2)
    run(shop(), settings(tmp_path))
    run(shop(), settings(tmp_path))
    assert slate(tmp_path, "score") == {"seen": [0, 3, 1, 2]}
    balanced(tmp_path / "store")


def test_letters_are_chosen_by_key_and_time_and_number(tmp_path: Path) -> None:
    """By what they are, and by when they were set aside."""
    BROKEN.update({1, 2, 3})
    put(tmp_path, *buys(0, 3), {"user": "bob", "ts": 9, "n": 3})
    run(shop(), settings(tmp_path))
    assert retry(tmp_path, key="bob", dry_run=True) == (1, 0)
    assert retry(tmp_path, until=0, dry_run=True) == (0, 0)
    assert retry(tmp_path, since=0, limit=2) == (2, 0)
    assert retry(tmp_path, stream="buys") == (1, 2)


def test_a_record_that_never_was_an_event_is_read_anew(tmp_path: Path) -> None:
    """As its source says now: here its unit was forgotten. It goes to all who read the stream."""
    put(tmp_path, *buys(10**15, 10**15 + 2))
    summary = run(shop(unit=None, ts="n"), settings(tmp_path))
    assert (summary.events, summary.dead_letters) == (2, 2)
    assert slate(tmp_path, "count") is None
    assert retry(tmp_path) == (2, 0)
    run(shop(), settings(tmp_path))
    assert slate(tmp_path, "count") == {"n": 2}
    assert slate(tmp_path, "score") == {"seen": [10**15, 10**15 + 1]}
    progress = balanced(tmp_path / "store")
    assert progress.events == 2
    assert progress.counts("count").retried == 2


def test_late_events_are_let_in(tmp_path: Path) -> None:
    """To all who read their stream, with their own time, and not late again."""
    put(tmp_path, *buys(1_000, 1_002))
    run(shop(order="event-time"), settings(tmp_path, final=True))
    put(tmp_path, *buys(5, 7))
    run(shop(order="event-time"), settings(tmp_path, final=True))
    assert slate(tmp_path, "count") == {"n": 2}
    assert retry(tmp_path, kind="late") == (2, 0)
    run(shop(order="event-time"), settings(tmp_path, final=True))
    assert slate(tmp_path, "count") == {"n": 4}
    assert slate(tmp_path, "score") == {"seen": [1000, 1001, 5, 6]}
    progress = balanced(tmp_path / "store")
    assert (progress.late, progress.counts("count").retried) == (2, 2)


@pytest.mark.parametrize("kind", ["dropped", "diverted"])
def test_events_that_were_turned_away_come_back(tmp_path: Path, kind: str) -> None:
    """To the update that turned them away, when there is room."""

    def limited() -> ms.App:
        app = ms.App("shop")
        app.source("buys", key="user", ts="ts", unit="us")
        options: dict[str, Any] = {"limit": 2, "overload": "drop"}
        if kind == "diverted":
            options = {"limit": 2, "overload": "divert", "overflow": "spilt"}
            app.output("spilt")

        @app.update("buys", name="score", **options)
        def score(event: Any, slate: Any) -> None:
            slate.setdefault("seen", []).append((event.stream, event.value["n"]))

        return app

    put(tmp_path, *buys(0, 4))
    run(limited(), settings(tmp_path))
    assert len(slate(tmp_path, "score")["seen"]) == 2
    assert retry(tmp_path, kind=kind, function="score") == (2, 0)
    run(limited(), settings(tmp_path))
    assert slate(tmp_path, "score")["seen"] == [["buys", n] for n in range(4)]
    balanced(tmp_path / "store")
    assert retry(tmp_path, kind=kind, function="score") == (0, 2)


def test_letters_of_a_renamed_update_follow_it(tmp_path: Path) -> None:
    """And of one that is gone become letters again, which say so."""
    BROKEN.add(1)
    put(tmp_path, *buys(0, 2))
    run(shop(), settings(tmp_path))
    BROKEN.clear()
    assert retry(tmp_path) == (1, 0)
    other = ms.App("shop")
    other.source("buys", key="user", ts="ts", unit="us")

    @other.update("buys", formerly="score")
    def rated(event: Any, slate: Any) -> None:
        slate.setdefault("seen", []).append(event.value["n"])

    other.retire("count")
    run(other, settings(tmp_path))
    assert slate(tmp_path, "rated") == {"seen": [0, 1]}
    balanced(tmp_path / "store")


def test_what_is_no_event_cannot_be_given_again(tmp_path: Path) -> None:
    """A timer is spent once it has fired; it is said how many there are."""
    app = ms.App("shop")
    app.source("buys", key="user", ts="ts", unit="us")

    @app.update("buys")
    def wait(event: Any, slate: Any) -> Any:
        return [ms.timer(after="1us")]

    @wait.on_timer
    def fire(timer: Any, slate: Any) -> None:
        raise ValueError("no")

    put(tmp_path, *buys(0, 1), *buys(50, 51))
    run(app, settings(tmp_path))
    outcome = retry_letters(FolderLogs(tmp_path / "store" / "logs"), LetterFilter(), {})
    assert (outcome.given, outcome.before) == (0, 0)
    assert [*outcome.impossible] == ["a timer, which is spent once it has fired"]


def test_two_hosts_that_retry_the_same_letters_give_each_once(tmp_path: Path) -> None:
    """On a shared store too, where any host may append."""
    BROKEN.update({1, 2})
    put(tmp_path, *buys(0, 4))
    place = f"shared:{tmp_path / 'place'}"
    given = settings(tmp_path, place=place, cache=str(tmp_path / "cache"))
    run(shop(), given)
    BROKEN.clear()
    first = PlaceLogs(place_at(place), tmp_path / "one")
    second = PlaceLogs(place_at(place), tmp_path / "two")
    counts = [retry_letters(logs, LetterFilter(), {}).given for logs in (first, second, first)]
    assert counts == [2, 0, 0]
    for logs in (first, second):
        logs.close()
    run(shop(), given)
    progress = balanced(tmp_path / "store")
    assert progress.counts("score").processed == 4


def test_the_command_gives_letters_again(tmp_path: Path) -> None:
    """On a store, whoever runs on it; and says how many."""
    from click.testing import CliRunner

    BROKEN.add(1)
    put(tmp_path, *buys(0, 3))
    run(shop(), settings(tmp_path))
    write_description(tmp_path / "store", describe(shop().checked(), {"buys": "json:in"}))
    store = ["--store", str(tmp_path / "store")]

    def said(*words: str) -> str:
        result = CliRunner().invoke(main, ["deadletters", *words, *store])
        assert result.exit_code == 0, result.output
        return result.output

    assert "KeyError: 1" in CliRunner().invoke(main, ["deadletters", *store]).output
    assert said("retry", "--dry-run") == "1 dead letter would be retried\n"
    assert said("retry", "--error", "KeyError: 1") == "1 dead letter is retried\n"
    assert "1 was retried before" in said("retry")
    assert ", retried\n" in CliRunner().invoke(main, ["deadletters", *store]).output
    left = CliRunner().invoke(main, ["deadletters", "--left", *store]).output
    assert left == "no dead letters that were not retried\n"
    wrong = CliRunner().invoke(main, ["deadletters", "retry", "--since", "today", *store])
    assert wrong.exit_code == 2


KILLED = """
import os, sys
from pathlib import Path
os.setpgrp()
os.environ["MILLSTREAM_FAULT"] = f"{at}:1:{{os.getpid()}}"
from driver_runs import test_retries as t
from millstream.driver.in_process import run
run(t.shop(), t.settings(Path({path!r})))
"""


@pytest.mark.parametrize("at", ["batch-start", "slates-committed", "batch-recorded"])
def test_a_crash_at_any_point_gives_none_twice(tmp_path: Path, at: str) -> None:
    """The process is ended inside the batch that takes the letters in; the next start does it."""
    BROKEN.update({1, 2})
    put(tmp_path, *buys(0, 4))
    run(shop(), settings(tmp_path))
    BROKEN.clear()
    assert retry(tmp_path) == (2, 0)
    tests = str(Path(__file__).parent.parent)
    code = KILLED.format(at=at, path=str(tmp_path))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, str(Path(tests).parent)])}
    ended = subprocess.run([sys.executable, "-c", code], env=env, check=False, timeout=120)
    assert ended.returncode == -9
    run(shop(), settings(tmp_path))
    assert slate(tmp_path, "score") == {"seen": [0, 3, 1, 2]}
    balanced(tmp_path / "store")


def test_a_run_whose_input_is_nearly_all_dead_says_so(tmp_path: Path) -> None:
    """With one of the errors; one with a dead letter among many does not."""
    put(tmp_path, *buys(10**15, 10**15 + 200))
    said: list[str] = []
    summary = run(shop(unit=None, ts="n"), settings(tmp_path), say=said.append)
    assert summary.dead_input is not None
    assert summary.dead_input.startswith("400 of 400 deliveries became dead letters, such as: ")
    assert "unit" in summary.dead_input
    assert said == [f"batch 0: {summary.dead_input}"]
    BROKEN.add(1)
    put(tmp_path, *buys(0, 20))
    assert run(shop(), settings(tmp_path)).dead_input is None
