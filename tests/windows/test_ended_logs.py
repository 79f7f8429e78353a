"""An end is an end: a log that has ended has nothing more, and nobody waits for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import (
    NODES,
    Sent,
    a_job,
    an_app,
    answers,
    as_json,
    events,
    joined,
    told,
    windows,
)

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.windows import Area, Spatial, Temporal
from millstream.windows.accounts import residual
from millstream.windows.job import Job
from millstream.windows.job_view import SHOWN, shown
from millstream.windows.panes.message import Message
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.placed import job_parts

SECOND = 1_000_000
JOB = a_job()


def open_windows(run: ms.testing.Run) -> list[int]:
    found: list[int] = run.slate("counts.root", "1/0")["meta"]["open"]
    return found


def view(run: ms.testing.Run, app: ms.App) -> dict[str, Any]:
    tables = {
        reducer: {entry: table[entry] for entry in table if entry.startswith(SHOWN)}
        for reducer, table in run.slates("counts.root").items()
    }
    parts = job_parts({"counts": app.parts["counts"].described()})
    found: dict[str, Any] = msgspec.to_builtins(shown("counts", parts["counts"], tables, 1))
    return found


def test_the_last_window_is_closed_and_none_follows() -> None:
    """If the end is in the middle of a window, the rest of it is empty. No window stays open, and
    none is shown."""
    app = an_app(JOB, nodes="a")
    run = ms.testing.run(app, events(told(JOB, "a", dict.fromkeys(range(3), "x"), over=True)))
    assert windows(run) == [(0, "complete"), (2, "complete")]
    assert answers(run) == {0: {"x": 2}, 2: {"x": 1}}
    last = run.stream("counts.windows")[-1].value
    assert last["coverage"]["area"] == 1.0
    assert last["completeness"]["unknown_panes"] == 0
    assert (open_windows(run), run.dead_letters) == ([], [])
    found = view(run, app)
    assert (found["open"], found["closed"], found["ended"]) == (0, 2, {"a": 3})


def test_a_window_that_was_only_opened_disappears() -> None:
    """The message of the last pane has opened it, and then the end is reported. Its timer finds
    nothing, and there is no answer."""
    job = a_job(latency="5s")
    app = an_app(job, nodes="a")
    sent = told(job, "a", dict.fromkeys(range(4), "x"), over=True)
    run = ms.testing.run(app, events(sent[:-1]))
    assert open_windows(run) == [2]
    run.feed(events(sent[-1:], ts=SECOND))
    assert open_windows(run) == []
    run.tick(by="1m")
    assert windows(run) == [(0, "complete"), (2, "complete")]
    assert run.dead_letters == []


def test_others_do_not_wait_for_a_log_that_has_ended() -> None:
    """Its panes count as received, and its windows as complete, for as long as the others go on."""
    run = ms.testing.run(
        an_app(JOB, nodes="ab"),
        events(
            [
                *told(JOB, "a", {0: "x"}, begin=0, over=True),
                *told(JOB, "b", dict.fromkeys(range(6), "y"), begin=0),
            ]
        ),
    )
    assert windows(run) == [(0, "complete"), (2, "complete"), (4, "complete")]
    assert open_windows(run) == [3]


@pytest.mark.parametrize("fidelity", [None, Temporal(1.0), Area(0.9)])
def test_a_window_of_which_the_rest_has_ended_is_closed(fidelity: Any) -> None:
    """With any fidelity, the end of a log is the last thing that a window waits for."""
    job = a_job(range=4, fidelity=fidelity)
    sent = [
        *told(job, "a", dict.fromkeys(range(4), "x"), begin=0),
        *told(job, "b", {0: "y"}, begin=0, over=True),
    ]
    run = ms.testing.run(an_app(job, nodes="ab"), events(sent[:-1]))
    assert windows(run) == []
    run.feed(events(sent[-1:], ts=SECOND))
    assert windows(run) == [(0, "complete")]


@pytest.mark.parametrize("fidelity", [Area(0.5), Temporal(0.5), Spatial(0.5)])
def test_the_empty_panes_of_an_ended_log_meet_no_fidelity(fidelity: Any) -> None:
    """They are received from the start, so each window after the end would be closed when it is
    opened, without a record. The other log's panes are awaited, and its last window is followed by
    none."""
    job = a_job(range=4, fidelity=fidelity)
    log = dict.fromkeys(range(8), "y")
    sent = [
        *told(job, "a", dict.fromkeys(range(4), "x"), begin=0, over=True),
        *told(job, "b", log, begin=0, over=True),
    ]
    run = ms.testing.run(an_app(job, nodes="ab"), events(sent))
    assert [begin for begin, _ in windows(run)] == [0, 4]
    assert answers(run)[4]["y"] >= 2
    assert open_windows(run) == []


def ended_empty(job: Job, node: str) -> Sent:
    """Returns the message of an agent about a log without a line."""
    first = Making(pane=-job.span.furthest)
    return {**as_json(Maker(job, node).begun(first)), "over": True}


def test_nobody_waits_for_an_empty_log() -> None:
    """Its end may be reported before or after the others' panes. No window is opened for it, and it
    is shown as ended, at no time."""
    app, sent = an_app(JOB, nodes="ab"), told(JOB, "b", dict.fromkeys(range(4), "y"), begin=0)
    for messages in ([ended_empty(JOB, "a"), *sent], [*sent, ended_empty(JOB, "a")]):
        run = ms.testing.run(app, events(messages))
        assert windows(run) == [(0, "complete"), (2, "complete")]
        assert answers(run) == {0: {"y": 2}, 2: {"y": 2}}
        assert (run.dead_letters, view(run, app)["ended"]) == ([], {"a": None})


def test_an_empty_log_that_is_written_later_is_waited_for() -> None:
    """Its lines are of any time: before those of the others, too."""
    run = ms.testing.run(an_app(JOB, nodes="ab"), events([ended_empty(JOB, "a")]))
    run.feed(events(told(JOB, "a", {-2: "x", -1: "x"}, begin=-2), ts=SECOND))
    run.feed(events(told(JOB, "b", dict.fromkeys(range(-2, 4), "y"), begin=-2), ts=2 * SECOND))
    assert windows(run) == [(-2, "complete")]
    assert answers(run) == {-2: {"x": 2, "y": 2}}


def test_a_log_that_goes_on_is_waited_for_again() -> None:
    """Windows after the end have its records, and wait for it."""
    log = dict.fromkeys(range(6), "x")
    run = ms.testing.run(
        an_app(JOB, nodes="ab"),
        events([*told(JOB, "a", log, begin=0, end=2, over=True), *told(JOB, "b", log, begin=0)]),
    )
    assert windows(run) == [(0, "complete"), (2, "complete"), (4, "complete")]
    later = dict.fromkeys(range(6), "x") | {6: "x", 7: "x"}
    more = told(JOB, "a", later, begin=0)[3:]
    run.feed(events(more, ts=SECOND))
    assert "ended" in view(run, an_app(JOB, nodes="ab"))
    run.feed(events(told(JOB, "b", later, begin=0)[7:8], ts=2 * SECOND))
    assert windows(run)[3:] == []  # b's pane 7 is awaited, and a's are there
    run.feed(events(told(JOB, "b", later, begin=0)[8:], ts=3 * SECOND))
    assert windows(run)[3:] == [(6, "complete")]
    table = run.slate("counts.root", "1/0")
    assert table["account|a"] == {"read": 8, "on_time": 4, "late": 4, "shed": 0, "dead": 0}


def test_windows_that_were_closed_meanwhile_are_corrected() -> None:
    """If they are still corrected; the correction has the records."""
    job = a_job(corrections=5)
    log = dict.fromkeys(range(4), "x")
    run = ms.testing.run(
        an_app(job, nodes="ab"),
        events([*told(job, "a", log, begin=0, end=2, over=True), *told(job, "b", log, begin=0)]),
    )
    assert answers(run)[2] == {"x": 2}
    run.feed(events(told(job, "a", log, begin=0)[3:], ts=SECOND))
    assert answers(run)[2] == {"x": 4}
    last = run.stream("counts.windows")[-1].value
    assert (last["from"], last["correction"]) == (2, 2)


def test_an_end_that_comes_again_ends_nothing() -> None:
    """A message from before the log went on, sent once more."""
    log = dict.fromkeys(range(4), "x")
    first = told(JOB, "a", log, begin=0, end=2, over=True)
    run = ms.testing.run(an_app(JOB, nodes="ab"), events(first))
    rest = told(JOB, "a", log, begin=0)[3:]
    run.feed(events([*rest, first[-1]], ts=SECOND))
    assert run.slate("counts.root", "1/0")["node|a"]["over"] > 1 << 60
    assert run.slate("counts.ledger", "")["meta"]["repeated"] == 0


def test_a_node_that_is_started_again_is_waited_for() -> None:
    """It reports its position even before it has found anything."""
    log = dict.fromkeys(range(4), "x")
    first = told(JOB, "a", log, begin=0, end=2, over=True)
    again = {**first[-1], "over": False}
    run = ms.testing.run(an_app(JOB, nodes="ab"), events([*first, again]))
    run.feed(events(told(JOB, "b", log, begin=0), ts=SECOND))
    assert windows(run) == [(0, "complete")]


def test_reducers_that_come_later_know_of_it() -> None:
    """Another number of reducers has tables of its own, which no message of the node reaches."""
    log = dict.fromkeys(range(8), "x")
    sent = [
        *told(JOB, "a", log, begin=0, end=2, over=True),
        *told(JOB, "b", log, begin=0, end=4),
        {"reducers": 2},
        *told(JOB, "b", log, begin=0)[5:],
    ]
    run = ms.testing.run(an_app(JOB, nodes="ab"), events(sent))
    assert {begin for begin, why in windows(run) if why == "complete"} == {0, 2, 4, 6}
    assert run.dead_letters == []


@st.composite
def endings(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[Sent]]:
    """Generates logs of different lengths and their messages, in any order and repeated, with their
    ends. Some are merged by a parent."""
    logs = {node: draw(st.lists(st.text("xy", max_size=2), max_size=7)) for node in NODES}
    sent: list[Sent] = []
    for node, texts in logs.items():
        if texts:
            sent += told(JOB, node, dict(enumerate(texts)), begin=0, over=True)
        else:
            sent.append(ended_empty(JOB, node))
    same = [one for one in sent if one.get("over") and one["pane"] == len(logs["a"])]
    if len(same) > 1 and draw(st.booleans()):
        sent = [one for one in sent if one not in same]
        sent.append({**joined(JOB, "t", same), "over": True})
    again = draw(st.lists(st.sampled_from(sent), max_size=5))
    begun = [one for one in sent if one["pane"] == one["until"] == 0]
    rest = draw(st.permutations([one for one in sent if one not in begun] + again))
    return logs, [*begun, *rest]


@given(endings())
@settings(max_examples=examples(80), deadline=None)
def test_in_any_order_every_window_is_answered_and_none_is_left(
    given: tuple[dict[str, list[str]], list[Sent]],
) -> None:
    """Windows that begin before the last log ends are answered once, complete, and with all
    records."""
    logs, messages = given
    run = ms.testing.run(an_app(JOB), events(messages))
    assert run.dead_letters == []
    end = max(map(len, logs.values()))
    truth = {
        first: Counter("".join("".join(texts[first : first + 2]) for texts in logs.values()))
        for first in range(0, end, 2)
    }
    assert {first: Counter(said) for first, said in answers(run).items()} == truth
    assert sorted(windows(run)) == [(first, "complete") for first in truth]
    table = run.slate("counts.root", "1/0")
    assert table["meta"]["open"] == []
    for node, texts in logs.items():
        account = table.get(f"account|{node}", dict.fromkeys(("read", "on_time"), 0))
        assert account["read"] == account["on_time"] == len("".join(texts))
        assert len(account) == 2 or residual(account) == 0


@given(endings(), cuttings, st.integers(1, 3), lanes)
@settings(max_examples=examples(30), deadline=None)
def test_the_engine_ends_as_the_reference_does(
    given: tuple[dict[str, list[str]], list[Sent]], cuts: list[int], shards: int, lane: Lane
) -> None:
    """This holds for any batches, shards and lanes."""
    app = an_app(a_job(reducers=2), "event-time")
    check_engine_is_reference(app, events(given[1]), cuts, shards, lane)


@pytest.mark.parametrize("change", [{"over": "yes"}, {"over": 1}, {"over": True, "until": 1}])
def test_an_end_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    """The end must be a truth value, and belong to no pane."""
    message: Any = told(JOB, "a", {0: "x"}, begin=0)[0]
    run = ms.testing.run(an_app(JOB), events([{**message, **change}]))
    (letter,) = run.dead_letters
    assert "over must be true or false, and true only if pane is until" in letter.error


@pytest.mark.parametrize(("by", "size"), [("records", 3), ("bytes", "3B")])
def test_a_window_that_was_not_full_is_not_final(by: str, size: Any) -> None:
    """If the log ends in the middle of a window of counts, and then goes on after all, the next
    records are late for it. Windows that were full before are final."""
    job = a_job(by=by, sequence=None, range=size, pane=size, combine=ms.algebra.count())
    app = an_app(job, nodes="a")
    maker, making, made = Maker(job, "a"), Making(), list[Message]()
    for _ in range(7):
        made += maker.take(making, "x", 0, 1)
    maker.cut(making)
    made += maker.end(making, 3)
    over = {**as_json(maker.begun(making)), "over": True}
    run = ms.testing.run(app, events([*map(as_json, made), over]))
    found = [(one.value["from"], one.value["bounds"]) for one in run.stream("counts")]
    assert [(begin, bound["value"]) for begin, bound in found] == [(0, 3), (3, 3), (6, 1)]
    assert [(bound["method"], bound["final"]) for _, bound in found] == [
        ("exact", True),
        ("exact", True),
        ("on time", False),
    ]
