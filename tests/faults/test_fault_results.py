"""The table of the fault runs: what counts as lost and doubled, and how parts become one table."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from docs.figures import filled
from fault_runs.chain import chain, events_of, records
from fault_runs.outcome import Outcome, compared, reference_over
from fault_runs.records import known_results, write
from fault_runs.result import Result, row_of
from fault_runs.scenario import Context, Scenario
from millstream.model.event import Event

GIVEN = events_of(records(1, 60))
MACHINE = {"cores": 2, "cpu": "one", "python": "3", "java": "17", "spark": "4"}


def ideal() -> Outcome:
    return reference_over(chain(), GIVEN, [])


def never(seed: int, folder: Path, context: Context) -> Result:
    raise AssertionError("not run here")


SCENARIOS = {name: Scenario(name, f"the promise of {name}", never, 3) for name in ("one", "two")}


def written(path: Path, commit: str, *results: Result) -> list[Result]:
    about: dict[str, Any] = {"commit": commit, "dirty": False}
    write(path, results, SCENARIOS, MACHINE, about, "2026-11-15")
    return known_results(path, commit)


def test_the_reference_itself_loses_and_doubles_nothing() -> None:
    """An outcome that is the reference's differs in nothing."""
    found = compared(chain(), GIVEN, ideal())
    assert (found.lost, found.doubled, found.note) == (0, 0, "")


def test_each_thing_that_is_missing_is_lost() -> None:
    """A slate, an output row and a dead letter that are not there count one each."""
    found = ideal()
    del found.slates[next(iter(found.slates))]
    found.streams["alerts"].pop()
    found.letters.pop()
    difference = compared(chain(), GIVEN, found)
    assert (difference.lost, difference.doubled) == (3, 0)
    assert "lost" in difference.note


def test_each_thing_that_is_there_again_is_doubled() -> None:
    """A row, a dead letter and a late event more than the reference has count one each."""
    found = ideal()
    found.streams["alerts"].append(found.streams["alerts"][0])
    found.letters.append(found.letters[0])
    found.late.append(Event("records", 5, "nobody", {"n": 1}))
    difference = compared(chain(), GIVEN, found)
    assert (difference.lost, difference.doubled) == (0, 3)


def test_a_wrong_slate_is_both() -> None:
    """A slate with other content is a lost one and one too many."""
    found = ideal()
    owner, (last, _, timers, entries) = next(
        (owner, slate) for owner, slate in found.slates.items() if owner[0] == "fold"
    )
    found.slates[owner] = (last, b'{"hash":1}', timers, entries)
    difference = compared(chain(), GIVEN, found)
    assert (difference.lost, difference.doubled) == (1, 1)


def test_an_event_that_is_late_and_processed_is_seen() -> None:
    """The reference leaves late events out; a run that processed one as well has too much."""
    found = ideal()
    found.late.append(GIVEN[7])
    assert compared(chain(), GIVEN, found).doubled > 0


def test_parts_of_a_long_run_become_one_table(tmp_path: Path) -> None:
    """Results of one commit are put together, a repeated seed counts once, as it ended last;
    those of another commit are not mixed in."""
    path = tmp_path / "faults.json"
    first, again = Result("one", 0, 1, 0), Result("one", 0, 0, 0, (2.0,), runs=2)
    assert written(path, "a", first, Result("one", 1, 0, 0)) == [first, Result("one", 1, 0, 0)]
    assert written(path, "a", again) == [again, Result("one", 1, 0, 0)]
    other = Result("two", 0, 0, 0, (1.0, 3.0))
    assert written(path, "a", other) == [again, Result("one", 1, 0, 0), other]
    assert written(path, "b", other) == [other]


def test_parts_that_end_at_the_same_time(tmp_path: Path) -> None:
    """Several runs add to one file at once, and none is lost."""
    path = tmp_path / "faults.json"
    results = [Result("one", seed, 0, 0) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda result: written(path, "a", result), results))
    assert known_results(path, "a") == results


def test_the_row_of_a_fault() -> None:
    """Strikes are added up, recoveries give a median and a maximum; a run that did not come to its
    end is no run."""
    results = [
        Result("one", 0, 1, 2, (1.0, 2.0, 9.0), runs=3),
        Result("one", 1, 0, 0, (4.0,)),
        Result("one", 2, 0, 0, failed="it hangs"),
    ]
    row = row_of("one", "all is well", results)
    assert (row["runs"], row["failed"], row["lost"], row["doubled"]) == (4, 1, 1, 2)
    assert (row["recovery_median_s"], row["recovery_max_s"]) == (3.0, 9.0)
    assert not results[0].clean
    assert results[1].clean
    assert not results[2].clean


@pytest.mark.parametrize(("slowest", "held"), [(9.0, True), (11.0, False)])
def test_a_standby_takes_over_in_time(tmp_path: Path, slowest: float, held: bool) -> None:
    """The slowest takeover of all parts has the bar, ten seconds after the lease's end."""
    path = tmp_path / "faults.json"
    written(path, "a", Result("one", 0, 0, 0, (7.0,), takeover_s=(2.0, slowest)))
    known = written(path, "a", Result("one", 1, 0, 0, (7.0,), takeover_s=(3.0,)))
    assert [result.takeover_s for result in known] == [(2.0, slowest), (3.0,)]
    bars = {bar["figure"]: bar for bar in json.loads(path.read_text())["bars"]}
    bar = bars["takeover_max_s of one"]
    assert (bar["value"], bar["limit"], bar["held"]) == (slowest, 10.0, held)
    assert "takeover_max_s of two" not in bars


@pytest.mark.parametrize(("lost", "verdict"), [(0, "(bar 0, held)"), (4, "(bar 0, missed)")])
def test_the_table_is_in_the_page(tmp_path: Path, lost: int, verdict: str) -> None:
    """`make docs` fills the block from the file. Losses, and scenarios with too few runs, are named
    under it."""
    written(
        tmp_path / "faults.json", "abcdef0123456", Result("one", 0, lost, 0, (1.5, 2.5), runs=3)
    )
    page = filled("<!-- figures:faults -->\nold\n<!-- /figures:faults -->\n", tmp_path)
    assert f"| one | the promise of one | 3 | 0 | {lost} | 0 | 2 | 2.5 |" in page
    assert f"lost in all runs {lost} {verdict}" in page
    assert "runs of two 0 (bar 3, missed)" in page
    assert "old" not in page
    assert "Failed" not in page


def test_a_run_that_failed_is_in_the_page(tmp_path: Path) -> None:
    """It has a column of its own, and its seed and reason stand under the table."""
    runs = Result("one", 0, 0, 0, (1.5,), runs=3), Result("one", 1, 0, 0, failed="it hangs")
    written(tmp_path / "faults.json", "abcdef0123456", *runs)
    page = filled("<!-- figures:faults -->\n<!-- /figures:faults -->\n", tmp_path)
    assert "| | promise | runs | failed | lost | doubled |" in page
    assert "| one | the promise of one | 3 | 1 | 0 | 0 | 1.5 | 1.5 |" in page
    assert "`one --seed 1: it hangs`" in page
