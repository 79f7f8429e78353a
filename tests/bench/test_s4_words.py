"""The evaluation of S4: its words, its elements, and how runs are counted; no timings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from evaluation_records import judged
from hypothesis import given
from hypothesis import strategies as st
from s4_rows import COMMITS, SAMPLES, SHARED
from s4_rows import rows as made_up

import millstream as ms
from bench.bench import Bench
from bench.s4 import cases, rows, words
from bench.s4.page import PAGE
from bench.s4.plan import Files
from bench.s4.truth import Counted, compared
from bench.s4.watching import Used, rate_between, tasks_by_part, used
from bench.s4.words_app import (
    application,
    digit_sum,
    divisible_by_eleven,
    divisible_by_three,
)

COUNT = 800
WORDS = list(words.words(COUNT))
TRUTH = words.truth_of(WORDS)


def read(text: str) -> int | None:
    """The number that a word is, by the digits one after the other; None if it is none."""
    number = 0
    for letter in text:
        if letter not in "0123456789":
            return None
        number = number * 10 + "0123456789".index(letter)
    return number


def test_the_truth_is_that_of_the_text() -> None:
    """Words read back from their text are as the generator says: three of four are numbers of 100
    digits, and exactly one of four is divisible by three."""
    numbers = [read(word.text) for word in WORDS]
    assert numbers == [word.number for word in WORDS]
    assert {len(word.text) for word in WORDS} == {100}
    known = [(place, number) for place, number in enumerate(numbers) if number is not None]
    assert TRUTH.words == COUNT
    assert TRUTH.numbers == len(known) == COUNT * 3 // 4
    assert TRUTH.by_three == sum(number % 3 == 0 for _, number in known) == COUNT // 4
    assert TRUTH.by_eleven == sum(number % 11 == 0 for _, number in known) > 0
    assert TRUTH.places == sum(place for place, _ in known)
    assert TRUTH.places_by_three == sum(place for place, number in known if number % 3 == 0)


def test_the_papers_data_has_the_papers_counts() -> None:
    """Of 200,000 words 50,000 are numbers divisible by three, as in the paper. Of 2,000,000 there
    are ten times as many, since every four words are alike."""
    assert (Files().small, Files().large) == (200_000, 2_000_000)
    assert TRUTH.by_three / TRUTH.words == 50_000 / 200_000


def test_words_are_the_same_each_time_and_the_first_are_those_of_more(tmp_path: Path) -> None:
    """The same seed gives the same words for any count, and they are read back as they were
    written."""
    assert list(words.words(101)) == WORDS[:101]
    assert list(words.words(101, seed=12)) != WORDS[:101]
    made = [words.written(tmp_path, 101, 4) for _ in range(2)]
    assert made[0] == made[1]
    folder, truth = made[0]
    lines = "".join(path.read_text() for path in sorted(folder.iterdir())).splitlines()
    assert [json.loads(line)["word"] for line in lines] == [word.text for word in WORDS[:101]]
    assert [json.loads(line)["n"] for line in lines] == list(range(101))
    assert truth == words.truth_of(WORDS[:101])


@given(st.integers(min_value=0, max_value=10**100 - 1), st.integers(0, 100))
def test_string_arithmetic_is_division(number: int, width: int) -> None:
    """Divisibility by the digits of the text is what division says, with zeros in front too."""
    text = str(number).rjust(width, "0")
    assert digit_sum(text) == sum(map(int, text))
    assert divisible_by_three(text) == (number % 3 == 0)
    assert divisible_by_eleven(text) == (number % 11 == 0)
    assert divisible_by_eleven(str(number * 11))
    assert divisible_by_three(str(number * 3))


@pytest.mark.parametrize("keys", [1, 2, 4, 8])
def test_the_elements_count_the_truth(keys: int) -> None:
    """With any number of keys each instance of Eleven and Three takes every number once, and
    Aggregation counts what is divisible by three once a key."""
    records = [json.loads(line) for line, _ in words.records(WORDS)]
    run = ms.testing.run(application(keys), {"words": records})
    names = [str(number) for number in range(1, keys + 1)]
    assert list(run.slates("Three")) == list(run.slates("Eleven")) == names
    assert run.dead_letters == []
    elevens = [asdict(slate) for slate in run.slates("Eleven").values()]
    threes = [asdict(slate) for slate in run.slates("Three").values()]
    assert {slate["divisible"] for slate in threes} == {TRUTH.by_three}
    assert {slate["divisible"] for slate in elevens} == {TRUTH.by_eleven}
    found = compared(elevens, threes, asdict(run.slate("Aggregation", "")), TRUTH)
    whole, counted = keys * TRUTH.numbers, keys * TRUTH.by_three
    assert found == Counted(whole, whole, counted, 0, 0, counted)


def test_the_count_is_put_out_every_ten_seconds_of_event_time() -> None:
    """Aggregation publishes what it has counted, at the end of each ten seconds."""
    count = 12_000  # twelve seconds of event time
    records = [json.loads(line) for line, _ in words.records(words.words(count))]
    run = ms.testing.run(application(1), {"words": records})
    start = words.START
    expected = sum(
        word.number is not None and word.number % 3 == 0
        for place, word in enumerate(words.words(count))
        if (start + place * words.STEP) // 10_000_000 == start // 10_000_000
    )
    assert [event.value for event in run.stream("counts")] == [{"processed": expected}]


SLATE = {"processed": TRUTH.numbers, "numbers": TRUTH.places, "divisible": TRUTH.by_three}
COUNTS = {"processed": TRUTH.by_three, "numbers": TRUTH.places_by_three}


@pytest.mark.parametrize(
    ("three", "aggregation", "lost", "doubled"),
    [
        (SLATE, COUNTS, 0, 0),
        ({**SLATE, "processed": TRUTH.numbers - 2}, COUNTS, 2, 0),
        ({**SLATE, "processed": TRUTH.numbers + 3}, COUNTS, 0, 3),
        ({**SLATE, "numbers": TRUTH.places + 1}, COUNTS, 1, 1),
        (SLATE, {**COUNTS, "numbers": 0}, 1, 1),
        ({}, {}, TRUTH.numbers + TRUTH.by_three, 0),
    ],
    ids=["exact", "lost", "doubled", "one for another", "wrong ones counted", "nothing there"],
)
def test_what_is_lost_and_doubled_shows(
    three: dict[str, Any], aggregation: dict[str, Any], lost: int, doubled: int
) -> None:
    """An instance with too few words has lost some, one with too many has doubled some, and one
    with the right number of wrong words has both."""
    eleven = {**SLATE, "divisible": TRUTH.by_eleven}
    found = compared([eleven], [three], aggregation, TRUTH)
    assert (found.lost, found.doubled) == (lost, doubled)


def test_a_rate_counts_whole_batches() -> None:
    """A batch that ends within the time counts with all of its time, also what was before."""
    assert rate_between(COMMITS, 100.0, 120.0) == 500.0
    assert rate_between(COMMITS, 103.0, 109.0) == 500.0
    slower = [*COMMITS[:6], COMMITS[6]._replace(at=120.0)]
    assert rate_between(slower, 110.5, 121.0) == 100.0
    assert rate_between(COMMITS, 120.5, 130.0) == 0.0


def test_what_a_worker_used_is_that_of_the_time() -> None:
    """Cores are work over time, memory the most seen; the rest of the machine is others'."""
    found = used(SAMPLES, 105.0, 115.0)
    assert found["worker 1"] == Used(0.5, 150.0)
    assert found["worker 2"].cores == 0.25
    assert found["worker 3"] == Used(0.0, 0.0)
    assert "w3_cores" not in rows.spent_columns(found, {}), "it was dead all the time"
    assert found["others"].cores == 1.25


def test_tasks_are_counted_by_worker(tmp_path: Path) -> None:
    """A commit of a layer counts for the worker whose process wrote it; others do not count."""
    trace = tmp_path / "points"
    trace.write_text("layer-commit 1 7\nbetween-layers 1 7\nlayer-commit 1 8\nlayer-commit 2 7\n")
    assert tasks_by_part(trace, {7: "worker 1"}) == {"worker 1": 2}
    assert tasks_by_part(tmp_path / "none", {}) == {}


def test_the_bars_are_those_of_the_issue() -> None:
    """Nothing lost or doubled, the stated rates held, at least half with one of two workers dead,
    and all but a tenth when it is back; a run that misses one shows it."""
    found = judged("s4", made_up(), rows.JUDGING, SHARED)
    assert [bar["figure"] for bar in found["bars"] if not bar["held"]] == []
    limits = {bar["figure"]: bar["limit"] for bar in found["bars"]}
    assert limits == {
        "lost": 0,
        "doubled": 0,
        "failed": 0,
        "rate_of_asked": 0.98,
        "dead_of_two": 0.5,
        "returned": 0.9,
    }
    worse = [{**row, "lost": 1} if row["experiment"] == "fault" else row for row in found["rows"]]
    worse.append({"experiment": "failed", "what": "http", "error": "no"})
    missed = [bar.figure for bar in rows.JUDGING.bars(rows.JUDGING.figures(worse)) if not bar.held]
    assert missed == ["lost", "failed"]


def test_tables_of_s4_say_what_was_measured() -> None:
    """Figures stand where they belong; the rows of a table are of one width."""
    found = judged("s4", made_up(), rows.JUDGING, SHARED)
    for name in PAGE.names:
        lines = PAGE.part(found, name).splitlines()
        assert len({line.count("|") for line in lines if line.startswith("|")}) <= 1, name
    faults, returned = PAGE.part(found, "faults"), PAGE.part(found, "returned")
    assert "| 2 workers, 1 killed, 4 keys | 2,000 | 2,000 | 0 | 0 |" in faults
    assert "undisturbed rate: 2 s." in returned
    assert "67 / 33 | 12 / 8 | 1.33 |" in PAGE.part(found, "spread")


def test_the_pictures_are_of_the_results() -> None:
    """docs/pictures has what `make docs` would draw from the results."""
    from docs import build

    for name, picture in build.draw_results().items():
        assert (build.PICTURE.parent / name).read_text(encoding="utf-8") == picture, "run make docs"


@pytest.mark.spark
@pytest.mark.faults
def test_a_quick_run_of_the_evaluation(tmp_path: Path) -> None:
    """On a real cluster, all ways to run leave their rows, and nothing is lost or doubled, the
    killed workers included."""
    found = cases.run(Bench(tmp_path, quick=True, results=tmp_path))
    assert {row["experiment"] for row in found.rows} == {"files", "http", "fault", "returned"}
    assert found.figures["lost"] == found.figures["doubled"] == found.figures["failed"] == 0
    assert json.dumps([found.rows, found.settings])
