"""Late records count against what an answer claims: before its window is closed, and after."""

from __future__ import annotations

from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import a_job, an_app, events, told

import millstream as ms
from millstream.messages.jobs import JobAnswer
from millstream.windows import Job, Logs
from millstream.windows.job_view import shown
from millstream.windows.lateness import late_warning
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
        (1_000, 300, 2_000_000, "30% of 1,000 records came late, up to 2s behind: are its records"),
        (1_000, 300, 0, "30% of 1,000 records came late: are its records in no order?"),
    ],
)
def test_what_is_likely_is_said(read: int, late: int, behind: int, said: str | None) -> None:
    """When there are enough records, and much of them is late."""
    found = late_warning("web1", read, late, behind)
    assert found is said if said is None else str(found).startswith(f"web1: {said}")


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
