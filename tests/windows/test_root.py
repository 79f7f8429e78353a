"""The root of a job with agents: when windows open, and when and why they are closed."""

from __future__ import annotations

from typing import Any

import pytest
from windows.messages import a_job, an_app, answers, events, on_told, told, windows

import millstream as ms
from millstream.windows import Area, Job, Spatial, Temporal
from millstream.windows.accounts import window_entry
from millstream.windows.board.pane_marks import pane_in

SECOND = 1_000_000
LOGS = {"a": {0: "xy", 1: "x", 2: "z"}, "b": {0: "x", 1: "y", 2: "z"}, "c": {0: "", 1: "", 2: "z"}}


def fed(job: Job, *messages: Any, ts: int = 1_000) -> ms.testing.Run:
    run = ms.testing.run(an_app(job), events(messages, ts))
    assert run.dead_letters == []
    return run


def test_a_window_is_closed_when_all_nodes_have_sent_it() -> None:
    """This holds for any order of the nodes. The answer covers all of them, and says so."""
    job = a_job()
    messages = [one for node, log in LOGS.items() for one in told(job, node, log, begin=0)]
    run = fed(job, *messages)
    assert windows(run) == [(0, "complete")]
    assert answers(run) == {0: {"x": 3, "y": 2}}
    (window,) = run.stream("counts.windows")
    assert window.value["coverage"] == {"area": 1.0, "time": 1.0, "space": 1.0, "missing": {}}
    assert window.value["missing"] == {}
    assert window.value["completeness"] == {
        "records": 1.0,
        "bytes": 1.0,
        "unknown_panes": 0,
        "late": 0.0,
        "misdated": 0.0,
    }
    assert window.value["histogram"] == [3, 3]
    assert window.value["accounts"]["a"] == {
        "read": 3,
        "on_time": 3,
        "late": 0,
        "shed": 0,
        "dead": 0,
        "residual": 0,
    }


def test_agents_are_told_what_was_taken_opened_and_closed() -> None:
    """Every pane, once and again when it comes again; a window when it opens and when it closes."""
    job = a_job(reducers=2)
    run = fed(job, *(one for node, log in LOGS.items() for one in told(job, node, log)))
    said = on_told(run)
    assert {"accepted": {"pane": 0, "until": 1, "nodes": ["a"]}} in said
    assert [one for one in said if "opened" in one] == [{"opened": 0}, {"opened": 1}]
    assert sorted(
        (one["closed"], one["reducer"], one["of"]) for one in said if "closed" in one
    ) == [
        (0, "2/0", 2),
        (0, "2/1", 2),
    ]
    before = len(said)
    run.feed(events(told(job, "a", LOGS["a"]), ts=SECOND))
    again = on_told(run)[before:]
    assert [one["accepted"]["pane"] for one in again] == [0, 1, 2]
    assert answers(run) == {0: {"x": 3, "y": 2}}


def test_a_node_that_begins_later_is_absent_before() -> None:
    """Its earlier panes are lost at once, so that nobody waits for them."""
    job = a_job()
    run = fed(
        job,
        *told(job, "a", LOGS["a"], begin=0),
        *told(job, "b", LOGS["b"], begin=0),
        *told(job, "c", {1: "q", 2: "z"}, begin=1),
    )
    assert windows(run) == [(0, "failure")]
    (window,) = run.stream("counts.windows")
    assert window.value["coverage"]["area"] == pytest.approx(5 / 6)
    assert window.value["completeness"]["unknown_panes"] == 1
    assert window.value["missing"] == {"absent": {"panes": 1, "nodes": ["c"], "more": 0}}


def test_a_node_that_goes_on_after_a_stop_is_absent_nowhere() -> None:
    """The node reports its position. Earlier panes that it has not sent, such as those of a later
    round, may still come. A node that has lost its state starts its counts again, and has no such
    panes."""
    job = a_job(range=4)
    panes = told(job, "a", dict.fromkeys(range(4), "x"), begin=0)
    goes_on = {**panes[0], "pane": 2, "until": 2, "nodes": panes[4]["nodes"]}
    run = ms.testing.run(an_app(job, nodes=["a"]), events([panes[0], panes[2], goes_on]))
    assert windows(run) == []
    run.feed(events([panes[1], *panes[3:]], ts=SECOND))
    assert windows(run) == [(0, "complete")]
    anew = told(job, "a", dict.fromkeys(range(6, 8), "x"), begin=6)
    run.feed(events(anew, ts=2 * SECOND))
    assert windows(run) == [(0, "complete"), (4, "failure")]


def test_a_node_whose_clock_is_ahead_costs_the_others_nothing() -> None:
    """Not even if it comes first: windows before its first pane are there for the others, and are
    closed as soon as these have sent them."""
    job = a_job()
    ahead = told(job, "c", {3_600: "z", 3_601: "z"}, begin=3_600)
    others = [one for node in "ab" for one in told(job, node, LOGS[node], begin=0)]
    run = fed(job, *ahead, *others)
    assert windows(run) == [(0, "failure")]
    assert answers(run) == {0: {"x": 3, "y": 2}}


def test_windows_that_were_closed_ahead_take_nothing_from_the_others() -> None:
    """A bound that one node can meet alone closes its windows, and only those."""
    job = a_job(fidelity=Area(0.3))
    ahead = told(job, "c", {3_600: "z", 3_601: "z", 3_602: ""}, begin=3_600)
    run = fed(job, *ahead)
    assert windows(run) == [(3_600, "fidelity")]
    run.feed(events([one for node in "ab" for one in told(job, node, LOGS[node])], ts=SECOND))
    assert [begin for begin, _ in windows(run)] == [3_600, 0, 2]


def test_panes_that_are_given_up_close_a_window_early() -> None:
    """As soon as the bound can no longer be met: there is no use in waiting (3.3)."""
    job = a_job(range=4, latency="1h", fidelity=Area(0.8))
    log = dict.fromkeys(range(4), "x")
    run = fed(job, *told(job, "a", log, lost=(1, 2), end=3))
    assert windows(run) == []
    run.feed(events(told(job, "b", log, lost=(0,), end=1), ts=SECOND))
    assert windows(run) == [(0, "failure")]
    (window,) = run.stream("counts.windows")
    assert window.value["completeness"]["records"] == pytest.approx(1 / 4)
    assert {"closed": 0, "reducer": "1/0"} in on_told(run)


def test_without_a_bound_a_window_waits_for_all_that_can_come() -> None:
    """Then what is lost is lost, and the window is closed without it."""
    job = a_job()
    messages = [one for node, log in LOGS.items() for one in told(job, node, log, lost=(1,))]
    run = fed(job, *messages[:-2])
    assert windows(run) == []
    run.feed(events(messages[-2:], ts=SECOND))
    assert windows(run) == [(0, "failure")]


@pytest.mark.parametrize(
    ("fidelity", "needed"), [(Area(0.5), 3), (Spatial(0.5), 3), (Temporal(0.5), 4)]
)
def test_a_bound_is_met(fidelity: Any, needed: int) -> None:
    """Three of six panes; one pane of all nodes; both panes of two nodes of three."""
    job = a_job(fidelity=fidelity)
    sent = [told(job, node, LOGS[node]) for node in "abc"]
    ways = {
        Area: [sent[0][0], sent[1][0], sent[0][1]],
        Spatial: [sent[0][0], sent[1][0], sent[2][0]],
        Temporal: [sent[0][0], sent[0][1], sent[2][0], sent[2][1]],
    }
    messages = ways[type(fidelity)]
    assert len(messages) == needed
    run = fed(job, *messages[:-1])
    assert windows(run) == []
    run.feed(events(messages[-1:], ts=SECOND))
    assert windows(run) == [(0, "fidelity")]


def test_a_window_of_time_has_until_its_end_and_its_latency() -> None:
    """On the wall clock, however early it was opened."""
    job = a_job(by="time", sequence=None, range="10s", pane="5s", latency="2s")
    now = 1_000 * SECOND
    app = an_app(job)
    run = ms.testing.run(app, clock=now)
    run.feed(events(told(job, "a", {200: "x"}, begin=200, end=201), ts=now))
    run.tick(to=now + 11 * SECOND)
    assert windows(run) == []
    run.tick(to=now + 12 * SECOND + 100)
    assert windows(run) == [(now, "latency")]


def test_an_old_window_of_time_has_its_latency_from_when_it_was_opened() -> None:
    """A log of yesterday is not too late for today."""
    job = a_job(by="time", sequence=None, range="10s", pane="5s", latency="2s")
    run = ms.testing.run(an_app(job), clock=1_000 * SECOND)
    run.feed(events(told(job, "a", {20: "x"}, begin=20, end=21), ts=1_000 * SECOND))
    run.tick(by="1s")
    assert windows(run) == []
    run.tick(by="2s")
    assert windows(run) == [(100 * SECOND, "latency")]


def test_late_panes_are_counted() -> None:
    """And change what is known of the window, not its answer."""
    job = a_job(fidelity=Area(0.3))
    run = fed(job, *told(job, "a", LOGS["a"]))
    assert windows(run) == [(0, "fidelity")]
    run.feed(events(told(job, "b", LOGS["b"]), ts=SECOND))
    table = run.slate("counts.root", "1/0")
    assert table["account|b"] == {"read": 3, "on_time": 1, "late": 2, "shed": 0, "dead": 0}
    window = table[window_entry(0)]
    assert (window["read"], window["on_time"], window["late"]) == (5, 3, 2)
    assert answers(run)[0] == {"x": 2, "y": 1}


def test_a_late_pane_corrects_a_window_if_that_is_asked() -> None:
    """A window is corrected until a number of later windows are closed. Each correction has its
    number."""
    job = a_job(fidelity=Area(0.3), corrections=1)
    run = fed(job, *told(job, "a", LOGS["a"]), *told(job, "b", LOGS["b"]))
    said = [one.value for one in run.stream("counts.windows") if one.value["from"] == 0]
    assert [one.get("correction", 0) for one in said] == [0, 1, 2]
    assert [one["coverage"]["area"] for one in said] == pytest.approx([2 / 6, 3 / 6, 4 / 6])
    assert said[-1]["accounts"]["b"]["late"] == 2
    assert answers(run)[0] == {"x": 3, "y": 2}
    later = dict.fromkeys(range(3, 8), "x")
    run.feed(events(told(job, "a", later), ts=SECOND))
    before = len(run.stream("counts.windows"))
    run.feed(events(told(job, "c", LOGS["c"]), ts=2 * SECOND))
    assert not [
        one
        for one in run.stream("counts.windows")[before:]
        if one.value["from"] == 0 and one.value.get("correction") == 3
    ]


def test_panes_that_no_window_needs_are_let_go() -> None:
    """For logs of any length the table has the open panes and windows, and the counts of the last
    windows."""
    job = a_job()
    log = dict.fromkeys(range(400), "xyz")
    run = fed(job, *(one for node in "abc" for one in told(job, node, log)))
    entries = [*run.slate("counts.root", "1/0")]
    assert not [one for one in entries if one.startswith(("board|", "pane|"))]
    assert sum(one.startswith("window|") for one in entries) <= 102


def test_a_node_that_jumps_a_century_ahead_costs_nothing() -> None:
    """The node is absent in between, and its panes there are accepted. The others continue."""
    job = a_job()
    century = 3_000_000_000
    first, *_ = told(job, "c", {0: "x"}, begin=0, end=1)
    jump = told(job, "c", {0: "x", 1: ""}, end=2)
    jump[1] = {**jump[1], "until": century}
    others = [one for node in "ab" for one in told(job, node, LOGS[node], begin=0)]
    run = fed(job, first, *jump, *told(job, "c", {century: "z", century + 1: ""}), *others)
    assert windows(run) == [(0, "failure")]
    assert run.slate("counts.root", "1/0")["node|c"]["begun"] == century


def test_nothing_is_kept_of_a_gap() -> None:
    """A node that has lost what it knew begins again far ahead: windows in between are never there,
    and panes after it are let go when theirs are closed."""
    job = a_job()
    run = ms.testing.run(an_app(job, nodes=["a"]), events(told(job, "a", LOGS["a"], begin=0)))
    later = dict.fromkeys(range(5_000, 5_007), "x")
    run.feed(events(told(job, "a", later, begin=5_000), ts=SECOND))
    assert windows(run) == [
        (0, "complete"),
        (2, "failure"),
        *((one, "complete") for one in (5_000, 5_002, 5_004)),
    ]
    table = run.slate("counts.root", "1/0")
    assert [pane_in(one) for one in table if one.startswith("board|")] == [5_006]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": {"d": {}}}, "must be the job's, a, b, c; got 'd'"),
        ({"pane": 4, "until": 3}, "from a pane to a later one"),
        ({"until": 5}, "with records must have one pane"),
        ({"reducers": 0}, "from 1 to 1000; got 0"),
    ],
)
def test_messages_that_are_refused(change: dict[str, Any], said: str) -> None:
    """A message that does not fit the job is a dead letter that says why, and changes nothing."""
    job = a_job()
    message: Any = told(job, "a", LOGS["a"])[0]
    if "nodes" in change:
        change = {"nodes": {"d": message["nodes"]["a"]}}
    run = ms.testing.run(an_app(job), events([{**message, **change}]))
    (letter,) = run.dead_letters
    assert said in letter.error
    assert run.slates("counts.root") == {}
