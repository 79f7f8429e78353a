"""Late records count against what an answer claims: before its window is closed, and after."""

from __future__ import annotations

from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import a_job, an_app, as_json, events, told

import millstream as ms
from millstream.messages.jobs import JobAnswer
from millstream.windows import Area, Job, Logs, Spatial, Temporal
from millstream.windows.job_view import shown
from millstream.windows.lateness import late_warning
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.placed import PlacedJob, job_parts

HOUR = 3_600_000_000


def view(run: ms.testing.Run, app: ms.App) -> JobAnswer:
    """Returns the job's view for `jobs` and the page."""
    parts = job_parts({name: part.described() for name, part in app.parts.items()})
    return shown("counts", parts["counts"], run.slates("counts.root"), 1)


def answers(run: ms.testing.Run, begin: int) -> list[dict[str, Any]]:
    """The totals that a window has said, one after the other."""
    return [
        one.value["total"] | {"late": one.value["completeness"]["late"]}
        for one in run.stream("counts.windows")
        if one.value["from"] == begin
    ]


def test_a_log_that_is_behind() -> None:
    """All records of a window come when it is closed, as from a node whose times are hours behind:
    its answer was not called final, and those that follow say how much comes late."""
    job = a_job(range=1, bounds="count")
    late = {pane: [0] * 8 for pane in range(5, 9)}
    sent = told(job, "a", {0: "", 1: "x", 8: "x"}, begin=0, late=late)
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    (first,) = answers(run, 0)
    assert (first["value"], first["method"], first["final"]) == (0, "on time", False)
    assert answers(run, 8)[0]["late"] == pytest.approx(32 / 34, abs=1e-3)
    entry = run.slate("counts.root", "1/0")
    assert (entry["meta"]["read"], entry["meta"]["late"]) == (34, 32)


def test_a_closed_window_is_corrected_by_late_records() -> None:
    """While it is corrected, each late record gives another answer, whose bounds have it."""
    job = a_job(range=1, bounds="count", corrections=5)
    sent = told(job, "a", dict.fromkeys(range(5), "x"), begin=0, late={3: [1, 1], 4: [1]})
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    found = answers(run, 1)
    assert [one["high"] for one in found] == [1, None, None]
    assert [one["known"]["high"] for one in found[1:]] == [3, 4]
    assert [one["low"] for one in found] == [1, 1, 1]
    assert [one["method"] for one in found] == ["on time", "worst case", "worst case"]


panes = st.integers(0, 7)


@given(
    log=st.dictionaries(panes, st.text("xy", max_size=3), min_size=1),
    late=st.dictionaries(panes, st.lists(panes, max_size=3)),
    corrections=st.integers(0, 8),
)
@settings(max_examples=examples(60), deadline=None)
def test_the_last_word_holds_the_truth(
    log: dict[int, str], late: dict[int, list[int]], corrections: int
) -> None:
    """With corrections enough, the bounds of a window's last answer hold all of its records. What
    no answer has was said to be possible: none of them was final, and none that a late record
    breaks was given with certainty."""
    job = a_job(range=1, bounds="count", corrections=corrections)
    late = {pane: [one for one in of if one < pane] for pane, of in late.items()}
    sent = told(job, "a", log, begin=0, end=8, late=late)
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    for pane in range(8):
        said = answers(run, pane)
        assert not any(one["final"] for one in said)
        truth = len(log.get(pane, "")) + sum(of.count(pane) for of in late.values())
        for one in said:
            assert one["low"] <= truth
            if one["confidence"] == 1.0:
                assert one["high"] is None or truth <= one["high"]
        if corrections == 8:
            last = said[-1]
            assert truth <= (last["known"] if last["high"] is None else last)["high"]


def test_after_a_late_record_more_are_expected() -> None:
    """Until the first late record a bound is of the records that came in time, without a
    confidence. From then on the upper bound is null, and `known` has the records that came in
    time."""
    job = a_job(range=1, bounds="count")
    sent = told(job, "a", dict.fromkeys(range(6), "x"), begin=0, late={3: [1]})
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    said = [one.value["total"] for one in run.stream("counts.windows")]
    assert [one["high"] for one in said] == [1, 1, 1, None, None, None]
    assert [one["confidence"] for one in said] == [None, None, None, 1.0, 1.0, 1.0]
    assert [one["known"]["high"] for one in said[3:]] == [1, 1, 1]


def test_none_is_expected_once_all_logs_have_ended() -> None:
    """Windows that are closed by the end of the last log have an upper bound, with the late records
    that are known."""
    job = a_job(range=1, bounds="count")
    sent = told(job, "a", dict.fromkeys(range(6), "x"), begin=0, late={3: [1]}, over=True)
    sent += told(job, "b", {0: "x"}, begin=0, over=True)
    run = ms.testing.run(an_app(job, nodes="ab"), events(sent))
    said = [one.value["total"] for one in run.stream("counts.windows")]
    assert [one["high"] for one in said] == [None, 2, 1, 1, 1, 1]


def test_the_share_of_records_is_not_known_while_they_come_late() -> None:
    """A window without a record, of a log of which most is late, does not claim to be whole; nor
    does `jobs` of windows that were closed before, or are open. Once all logs have ended it is
    known again."""
    job = a_job(range=1, bounds="count", corrections=9)
    log = {0: "x", 1: "x", 3: "x", 4: "x", 6: "x"}
    late = {1: [0] * 9, 4: [2] * 30}
    app = an_app(job, nodes="ab")
    run = ms.testing.run(app, events(told(job, "b", {0: "", 5: ""}, begin=0, end=7)))
    sent = told(job, "a", log, begin=0, late=late)
    run.feed(events(sent, ts=2_000))
    first = [one.value["completeness"] for one in run.stream("counts.windows")]
    assert [one["records"] for one in first] == [1.0, *[None] * 8]
    shown_now = view(run, app).windows
    assert {window.completeness.records for window in shown_now} == {None}
    over = [*told(job, "a", {7: ""}, over=True), *told(job, "b", {7: ""}, over=True)]
    run.feed(events(over, ts=3_000))
    shares = {window.window: window.completeness.records for window in view(run, app).windows}
    assert (shares[0], shares[6]) == (1 / 10, 1.0)


@pytest.mark.parametrize(
    ("job", "logs", "dated"),
    [
        ({"by": "time", "range": "1s"}, Logs(ts="at"), True),
        ({"by": "time", "range": "1s"}, Logs(), False),
        ({"by": "time", "range": "1s"}, None, True),
        ({"by": "records", "range": 5}, Logs(ts="at"), False),
        ({"by": "bytes", "range": 5}, Logs(), False),
        ({"by": "sequence", "sequence": "n", "range": 5}, Logs(), True),
    ],
)
def test_where_records_may_be_late(job: dict[str, Any], logs: Logs | None, dated: bool) -> None:
    """Where they say their own place on the axis; not where the node counts, or gives the times."""
    made = Job(map=lambda record: [], **job)
    assert PlacedJob(made, "counts", ("a",), logs).dated == dated


@pytest.mark.parametrize(
    ("read", "late", "behind", "said"),
    [
        (99, 99, HOUR, None),
        (1_000, 199, HOUR, None),
        (3_200, 3_014, 5 * HOUR + 7, "94% of 3,200 records came late, up to 5h behind: is its log"),
        (
            1_000,
            300,
            5 * HOUR - 3_000_000,
            "30% of 1,000 records came late, up to 5h behind: is its",
        ),
        (
            1_000,
            300,
            1_000 * HOUR,
            "30% of 1,000 records came late, up to 41d16h behind: is its log an old one (--once)?",
        ),
        (1_000, 300, 2_000_000, "30% of 1,000 records came late, up to 2s behind: are its records"),
        (1_000, 300, 0, "30% of 1,000 records came late: are its records in no order?"),
    ],
)
def test_what_is_likely_is_said(read: int, late: int, behind: int, said: str | None) -> None:
    """When there are enough records, and much of them is late."""
    found = late_warning("web1", read, late, behind)
    assert found is said if said is None else str(found).startswith(f"web1: {said}")


@pytest.mark.parametrize(("unit", "warned"), [("ms", True), ("s", False), (None, False)])
def test_jobs_warn_of_times_of_another_unit(unit: str | None, warned: bool) -> None:
    """Seconds that are taken for milliseconds begin in 1970."""
    now = 1_779_000_000_000_000
    job = ms.windows.Job(map=lambda record: [], range="1s")
    app = ms.App("logs")
    app.add(job, name="counts", nodes=["a"], logs=Logs(ts="at", unit=unit))
    begin = now // 1_000 // 1_000_000
    run = ms.testing.run(app, events(told(job, "a", {begin: ""}, begin=begin)))
    parts = job_parts({name: part.described() for name, part in app.parts.items()})
    found = shown("counts", parts["counts"], run.slates("counts.root"), 1, clock=now)
    said = "a: its times are likely to be in seconds (unit='s'): in milliseconds one of them is of "
    assert [one.startswith(said) for one in found.warnings] == [True] * warned


def test_records_of_before_the_first_pane_have_an_answer() -> None:
    """No window was made of them, since no node had told of a pane so early. While it would be
    corrected there is an answer that says what is missing of it; without corrections they are in
    the accounts alone."""
    log = dict.fromkeys(range(4, 8), "x")
    for corrections in (0, 3):
        job = a_job(range=1, bounds="count", corrections=corrections)
        sent = told(job, "a", log, begin=4, late={5: [3, 3], 6: [3, 0]})
        run = ms.testing.run(an_app(job, nodes="a"), events(sent))
        found = answers(run, 3)
        account = run.slate("counts.root", "1/0")["account|a"]
        assert (account["read"], account["late"]) == (8, 4)
        assert run.dead_letters == []
        assert answers(run, 0) == []  # that is farther back than answers are corrected
        if corrections:
            assert [(one["low"], one["high"]) for one in found] == [(0, None), (0, None)]
            assert [one["known"]["high"] for one in found] == [2, 3]
            said = [one.value for one in run.stream("counts.windows") if one.value["from"] == 3]
            assert [one.get("correction") for one in said] == [None, 1]
            assert said[0]["coverage"]["missing"] == {"absent": 1}
            assert (said[0]["why"], said[0]["completeness"]["records"]) == ("failure", None)
        else:
            assert found == []


def test_records_of_a_window_that_was_jumped_over_have_an_answer() -> None:
    """Its node had lost what it knew and begun far ahead; the window was never opened."""
    job = a_job(range=1, bounds="count")
    before = told(job, "a", {0: "x", 1: "x"}, begin=0)
    after = told(job, "a", {9: "x", 10: "x"}, begin=9, late={9: [5, 5]})
    run = ms.testing.run(an_app(job, nodes="a"), events([*before, *after]))
    (found,) = answers(run, 5)
    assert (found["low"], found["high"], found["known"]["high"]) == (0, None, 2)
    assert run.slate("counts.root", "1/0")["meta"]["open"] == [11]


@given(
    log=st.dictionaries(st.integers(4, 7), st.text("x", max_size=3), min_size=1),
    late=st.dictionaries(st.integers(4, 7), st.lists(panes, max_size=4)),
    size=st.sampled_from([{"range": 1}, {"range": 3, "slide": 1}, {"range": 4, "slide": 2}]),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_log_in_no_order_of_time(
    log: dict[int, str], late: dict[int, list[int]], size: dict[str, int]
) -> None:
    """With corrections enough, every window that has a late record has an answer, and the last one
    holds the truth; so it is with windows that begin with the first pane of all or later."""
    job = a_job(**size, bounds="count", corrections=20)
    late = {pane: [one for one in of if one < pane] for pane, of in late.items()}
    sent = told(job, "a", log, begin=4, end=12, late=late)
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    assert run.dead_letters == []
    step, length = size.get("slide", size["range"]), size["range"]
    for begin in range(-length + step, 8, step):
        within = range(begin, begin + length)
        behind = sum(one in within for of in late.values() for one in of)
        truth = behind + sum(len(text) for pane, text in log.items() if pane in within)
        said = answers(run, begin)
        if behind or begin >= 4:
            assert said[-1]["low"] <= truth
            assert said[-1]["high"] is None or truth <= said[-1]["high"]
            assert truth <= said[-1].get("known", {"high": truth})["high"]


def said_of(run: ms.testing.Run, begin: int) -> list[tuple[str, float, dict[str, int]]]:
    """Why each answer of a window says that it was closed, with its area and what is missing."""
    return [
        (one["why"], one["coverage"]["area"], one["coverage"]["missing"])
        for one in (event.value for event in run.stream("counts.windows"))
        if one["from"] == begin
    ]


def test_a_window_with_late_records_is_not_complete() -> None:
    """A pane of which records came late has come, but is not received: neither the coverage nor the
    reason for closing calls the window whole. Its other panes are."""
    job = a_job(range=2, bounds="count")
    log = dict.fromkeys(range(4), "x")
    late = told(job, "a", log, begin=0, late={1: [0]}, over=True)
    run = ms.testing.run(an_app(job, nodes="ab"), events([*late, *told(job, "b", log, over=True)]))
    assert said_of(run, 0) == [("late", 0.75, {"late": 1})]
    assert said_of(run, 2) == [("late", 1.0, {})]  # the log of b goes on
    (summary, _) = (one.value for one in run.stream("counts.windows"))
    assert (summary["coverage"]["time"], summary["coverage"]["space"]) == (1.0, 1.0)
    assert summary["histogram"] == [1, 2]
    assert summary["missing"] == {"late": {"panes": 1, "nodes": ["a"], "more": 0}}


def test_a_window_of_which_late_records_are_expected_is_not_complete() -> None:
    """No record of it is known to be late yet, so all of its panes are received."""
    job = a_job(range=1, bounds="count")
    sent = told(job, "a", dict.fromkeys(range(4), "x"), begin=0, late={2: [1]})
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    assert said_of(run, 1) == [("complete", 1.0, {})]  # as was known then
    assert said_of(run, 3) == [("late", 1.0, {})]


def test_a_correction_follows_what_came_late() -> None:
    """The corrected answer says so; `jobs` does of every closed window, corrected or not."""
    for corrections in (0, 5):
        job = a_job(range=1, bounds="count", corrections=corrections)
        app = an_app(job, nodes="a")
        sent = told(job, "a", dict.fromkeys(range(4), "x"), begin=0, late={3: [1, 1]})
        run = ms.testing.run(app, events(sent))
        corrected = [("late", 0.0, {"late": 1})] if corrections else []
        assert said_of(run, 1) == [("complete", 1.0, {}), *corrected]
        shown_now = {window.window: window for window in view(run, app).windows}
        assert shown_now[1].coverage.missing == {"late": 1}
        assert (shown_now[1].coverage.area, shown_now[1].coverage.time) == (0.0, 0.0)
        assert (shown_now[1].why, shown_now[0].why) == ("late", "late")
        (cell,) = (pane.nodes["a"] for pane in view(run, app).panes if pane.pane == 1)
        assert (cell.mark, cell.late) == ("data", 2)
        more = told(job, "a", {4: ""}, begin=4, end=5, late={4: [1]})
        run.feed(events(more[1:], ts=2_000))
        (window,) = (one for one in view(run, app).windows if one.window == 1)
        assert (window.coverage.area, window.coverage.missing) == (0.0, {"late": 1})


@pytest.mark.parametrize("fidelity", [Area(0.8), Spatial(1.0), Temporal(1.0)])
def test_late_records_do_not_meet_a_fidelity_nor_end_the_wait(fidelity: Any) -> None:
    """A few late records do not close a window before its other panes have come, and do not count
    towards what was asked."""
    job = a_job(range=4, bounds="count", fidelity=fidelity)
    log = dict.fromkeys(range(4), "x")
    a = told(job, "a", log, begin=0, late={1: [0], 2: [1]})
    b = told(job, "b", log, begin=0)
    run = ms.testing.run(an_app(job, nodes="ab"), events([*a, *b[:-1]]))
    assert said_of(run, 0) == []
    run.feed(events(b[-1:], ts=2_000))
    assert said_of(run, 0) == [("late", 0.75, {"late": 2})]


def test_many_quiet_windows_are_not_complete_while_late_records_are_expected() -> None:
    """They share an answer, which says so."""
    job = a_job(range=1)
    first = told(job, "a", {0: "x", 1: "x"}, begin=0, late={1: [0]})
    run = ms.testing.run(an_app(job, nodes="a"), events(first))
    maker, making = Maker(job, "a"), Making(pane=2)
    run.feed(events([as_json(one) for one in maker.end(making, 300)], ts=2_000))
    (quiet,) = (one.value for one in run.stream("counts.windows") if "windows" in one.value)
    assert (quiet["why"], quiet["coverage"]["area"]) == ("late", 1.0)


@given(
    log=st.dictionaries(panes, st.text("xy", max_size=3), min_size=1),
    late=st.dictionaries(panes, st.lists(panes, max_size=3)),
    corrections=st.sampled_from([0, 2, 8]),
    size=st.sampled_from([{"range": 1}, {"range": 4}, {"range": 4, "slide": 2}]),
)
@settings(max_examples=examples(60), deadline=None)
def test_complete_is_said_of_what_is_whole(
    log: dict[int, str], late: dict[int, list[int]], corrections: int, size: dict[str, int]
) -> None:
    """An answer that says `complete` has all records that were known then, and an area of 1. With
    corrections, and in `jobs`, no window that lacks a record is said to be complete or to have all
    panes."""
    job = a_job(**size, bounds="count", corrections=corrections)
    late = {pane: [one for one in of if one < pane] for pane, of in late.items()}
    app = an_app(job, nodes="a")
    run = ms.testing.run(app, events(told(job, "a", log, begin=0, end=8, late=late)))
    lacking = {one for of in late.values() for one in of}
    last: dict[int, Any] = {}
    for one in (event.value for event in run.stream("counts.windows")):
        last[one["from"]] = one
        if one["why"] == "complete":
            assert (one["coverage"]["area"], one["completeness"]["records"]) == (1.0, 1.0)
    shown_now = {window.start: window for window in view(run, app).windows if window.why}
    for begin, one in last.items():
        if begin < 0:
            continue
        gone = [pane for pane in range(begin, begin + size["range"]) if pane in lacking]
        area = 1 - len(gone) / size["range"]
        if gone:
            assert shown_now[begin].why != "complete"
            assert shown_now[begin].coverage.area == area
            assert shown_now[begin].coverage.missing == {"late": len(gone)}
        if corrections == 8:
            assert one["coverage"]["area"] == area
            assert not gone or one["why"] == "late"
