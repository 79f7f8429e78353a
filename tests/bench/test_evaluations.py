"""What the evaluations of S4, iMR and Feeding Frenzy have in common; no timings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import feeds_rows
import imr_rows
import pytest
import s4_rows
from evaluation_records import COMMIT, judged

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.experiment_pages import Page
from bench.experiments import Evaluation, Experiment, Judging, Row
from bench.feeds import cases as feeds
from bench.feeds.judging import JUDGING as FEEDS_JUDGING
from bench.feeds.page import PAGE as FEEDS_PAGE
from bench.feeds.plan import QUICK as FEEDS_QUICK
from bench.feeds.plan import Plan as FeedsPlan
from bench.figures import Outcome
from bench.imr import cases as imr
from bench.imr.judging import JUDGING as IMR_JUDGING
from bench.imr.page import PAGE as IMR_PAGE
from bench.imr.plan import QUICK as IMR_QUICK
from bench.imr.plan import Plan as ImrPlan
from bench.results import write
from bench.s4 import cases as s4
from bench.s4.page import PAGE as S4_PAGE
from bench.s4.plan import QUICK as S4_QUICK
from bench.s4.plan import Plan as S4Plan
from bench.s4.rows import JUDGING as S4_JUDGING

PAPERS = Path(__file__).resolve().parent.parent.parent / "docs" / "papers"


@dataclass(frozen=True, slots=True)
class Case:
    page: Page
    text: str
    """The file of the page."""
    judging: Judging
    rows: Callable[[], list[Row]]
    shared: Row
    evaluation: Callable[[Bench, Any], Evaluation]
    plan: Any
    quick: Any
    only: str
    """An experiment, and below it the figures of it alone that have a bar."""
    barred: frozenset[str]

    def record(self) -> dict[str, Any]:
        return judged(self.page.case, self.rows(), self.judging, self.shared)


CASES = [
    Case(
        S4_PAGE,
        "s4-evaluation.md",
        S4_JUDGING,
        s4_rows.rows,
        s4_rows.SHARED,
        s4.evaluation,
        S4Plan(),
        S4_QUICK,
        "returned",
        frozenset({"lost", "doubled", "dead_of_two", "returned"}),
    ),
    Case(
        IMR_PAGE,
        "imr-evaluation.md",
        IMR_JUDGING,
        imr_rows.rows,
        imr_rows.SHARED,
        imr.evaluation,
        ImrPlan(),
        IMR_QUICK,
        "fig10",
        frozenset({"fig10_gain"}),
    ),
    Case(
        FEEDS_PAGE,
        "feeding-frenzy-evaluation.md",
        FEEDS_JUDGING,
        feeds_rows.rows,
        feeds_rows.SHARED,
        feeds.evaluation,
        FeedsPlan(),
        FEEDS_QUICK,
        "reads-correct",
        frozenset({"correct_reads", "correct_violations"}),
    ),
]
every_case = pytest.mark.parametrize("case", CASES, ids=[case.page.case for case in CASES])


def run_one(
    case: Case, folder: Path, run: Callable[[Bench, Any], list[Row]]
) -> tuple[Experiment, Outcome]:
    """Runs the evaluation with `--only` one experiment, which is replaced by `run`."""
    bench = Bench(folder, quick=True, only=(case.only,), results=folder)
    evaluation = case.evaluation(bench, case.quick)
    experiment = replace(evaluation.experiments[case.only], run=run)
    experiments = {**evaluation.experiments, case.only: experiment}
    return experiment, replace(evaluation, experiments=experiments).outcome()


@every_case
def test_every_part_of_the_page_is_made(case: Case) -> None:
    """Each marked place of the page is a part, each part is in the page, and each picture that a
    part shows is drawn."""
    page, found = case.page, case.record()
    marked = re.findall(rf"<!-- figures:{page.case}\.(\w+) -->", (PAPERS / case.text).read_text())
    assert set(marked) == page.names
    drawn = page.pictures(found)
    shown = set()
    for name in page.names:
        text = page.part(found, name)
        assert text.endswith("\n")
        shown |= set(re.findall(r"pictures/([\w-]+\.svg)", text))
    assert shown == set(drawn)
    assert all(picture.startswith("<svg") for picture in drawn.values())


@every_case
def test_parts_without_rows_say_so(case: Case) -> None:
    """Parts that were not measured are named, with the command that measures them."""
    found = {**case.record(), "rows": []}
    for name, part in case.page.parts.items():
        command = f"make bench-{case.page.case} ONLY={part.experiment}"
        assert case.page.part(found, name) == f"Not measured yet: `{command}`.\n"
    assert case.page.pictures(found) == {}


@every_case
def test_what_was_not_run_has_no_bar(case: Case) -> None:
    """Bars are only of experiments that have rows; one that failed is counted."""
    some = [row for row in case.rows() if row["experiment"] == case.only]
    failed = {"experiment": "failed", "what": "fig8", "error": "no"}
    found = case.judging.figures([*some, failed])
    assert {bar.figure for bar in case.judging.bars(found)} == {"failed", *case.barred}
    assert found["failed"] == 1


@every_case
def test_the_quick_plan_is_a_smaller_one(case: Case, tmp_path: Path) -> None:
    """Every part of the quick plan differs from the whole one and is that of an experiment; both
    can be written as JSON, and every experiment has made-up rows."""
    names = {part.name for part in fields(case.plan)}
    assert all(getattr(case.quick, name) != getattr(case.plan, name) for name in names)
    experiments = case.evaluation(Bench(tmp_path), case.plan).experiments
    assert {id(getattr(case.plan, name)) for name in names} == {
        id(experiment.plan) for experiment in experiments.values()
    }
    assert json.dumps([asdict(case.quick), asdict(case.plan)])
    assert {row["experiment"] for row in case.rows()} == set(experiments)


@every_case
def test_one_experiment_again_keeps_the_others(case: Case, tmp_path: Path) -> None:
    """With `--only` the rows of the others stay as they were, with the commit that they are of; a
    failure of before is gone."""
    before = {**case.record(), "quick": True}
    order = list(case.evaluation(Bench(tmp_path), case.quick).experiments)
    rows = sorted(case.rows(), key=lambda row: order.index(row["experiment"]))
    kept = [row for row in rows if row["experiment"] != case.only]
    again = [row for row in rows if row["experiment"] == case.only]
    before["rows"] = [*kept, {"experiment": "failed", "what": case.only, "error": "no"}]
    write(tmp_path, before)
    experiment, found = run_one(case, tmp_path, lambda bench, plan: again)
    assert [row for row in found.rows if row["experiment"] == case.only] == again
    assert [row for row in found.rows if row["experiment"] != case.only] == kept
    assert found.figures["failed"] == 0
    measured = found.settings["measured"]
    other = kept[0]["experiment"]
    assert measured[other]["commit"] == COMMIT
    assert measured[other].items() >= case.shared.items()
    assert measured[case.only]["commit"] != COMMIT
    assert measured[case.only]["plan"] == asdict(experiment.plan)
    assert json.dumps([found.rows, found.settings])


@every_case
def test_an_experiment_that_fails_is_a_row(case: Case, tmp_path: Path) -> None:
    """The failure is counted. An unknown experiment is refused by name."""

    def fail(bench: Bench, plan: object) -> list[Row]:
        raise RunFailedError("the server did not come up")

    _, found = run_one(case, tmp_path, fail)
    assert found.figures["failed"] == 1
    assert found.rows[0]["error"] == "the server did not come up"
    bench = Bench(tmp_path, quick=True, only=("fig99",), results=tmp_path)
    with pytest.raises(RunFailedError, match=rf"{case.only}.*got 'fig99'"):
        case.evaluation(bench, case.quick).outcome()
