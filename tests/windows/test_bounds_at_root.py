"""Answers with bounds come out of the root, and `Error` closes windows by them."""

from __future__ import annotations

from typing import Any

import pytest
from windows.messages import NODES, Sent, a_job, an_app, answers, events, joined, told, windows

import millstream as ms
from millstream.model.event import Event
from millstream.windows import Area, Error, Job
from millstream.windows.fidelity import rounds
from millstream.windows.panes.pane_rank import rank

PANES = 20
LOGS = {
    node: {pane: "xxy" if (pane + at) % 2 else "xyyy" for pane in range(PANES)}
    for at, node in enumerate(NODES)
}


def counting(**job: Any) -> Job:
    return a_job(combine=ms.algebra.count(), range=PANES, **job)


def by_rank(job: Job) -> list[Sent]:
    """All panes of all nodes, in the order of their ranks, as `Error` has them made."""
    messages = [one for node in NODES for one in told(job, node, LOGS[node])]
    return sorted(messages, key=lambda one: rank(job.seed, one["tree"], one["pane"], PANES))


def begun(job: Job, *nodes: str) -> list[Sent]:
    """The nodes say that they begin at the beginning."""
    return [told(job, node, LOGS[node], begin=0)[0] for node in nodes]


def test_a_complete_window_has_all_that_came_in_time() -> None:
    """The bounds are the value itself, of each key and in total; nothing is unseen. They are not
    called exact: records that say their place themselves may come late."""
    job = counting()
    run = ms.testing.run(an_app(job), events([*begun(job, *NODES), *by_rank(job)]))
    assert run.dead_letters == []
    (window,) = run.stream("counts.windows")
    total = sum(len(text) for log in LOGS.values() for text in log.values())
    assert (window.value["total"]["low"], window.value["total"]["high"]) == (total, total)
    assert window.value["unseen"]["high"] == 0
    for one in run.stream("counts"):
        said, bound = one.value["value"]["count"], one.value["bounds"]
        assert (bound["low"], bound["value"], bound["high"]) == (said, said, said)
        assert (bound["method"], bound["final"]) == ("on time", False)


def test_a_drawn_half_has_bounds_about_the_truth() -> None:
    """The answer covers the panes that came, and the bounds cover all."""
    job = counting(fidelity=Area(0.5, drawn=True), seed=3)
    run = ms.testing.run(
        an_app(job), events(begun(job, *NODES) + by_rank(job)[: PANES * len(NODES) // 2])
    )
    assert windows(run) == [(0, "fidelity")]
    truth = {
        key: sum(text.count(key) for log in LOGS.values() for text in log.values()) for key in "xy"
    }
    for one in run.stream("counts"):
        bound = one.value["bounds"]
        assert bound["method"] == "sampled"
        assert one.value["value"]["count"] < bound["value"]
        assert bound["low"] <= truth[one.key] <= bound["high"]


def test_error_looks_when_a_round_is_complete_and_closes_when_it_is_near() -> None:
    """Logs that hardly vary are near enough after a quarter, and only when every node has sent all
    of it; the others are then told to stop."""
    job = counting(fidelity=Error(0.2))
    messages = by_rank(job)
    quarter = rounds(PANES)[0] * len(NODES)
    run = ms.testing.run(an_app(job), events(begun(job, *NODES) + messages[: quarter - 1]))
    assert windows(run) == []
    run.feed(events(messages[quarter - 1 : quarter], ts=10_000))
    assert windows(run) == [(0, "fidelity")]
    (window,) = run.stream("counts.windows")
    total = window.value["total"]
    truth = sum(len(text) for log in LOGS.values() for text in log.values())
    assert total["low"] <= truth <= total["high"]
    assert abs(total["value"] - truth) <= 0.2 * truth


def test_error_that_is_never_near_takes_all() -> None:
    """After the last round nothing is missing, and the answer is exact."""
    job = counting(fidelity=Error(0.0001))
    messages = by_rank(job)
    run = ms.testing.run(an_app(job), events(begun(job, *NODES) + messages[:-1]))
    assert windows(run) == []
    run.feed(events(messages[-1:], ts=10_000))
    assert windows(run) == [(0, "complete")]


def test_nodes_that_are_absent_are_not_waited_for_by_error() -> None:
    """A round is complete without them; of what they had nothing is known."""
    job = counting(fidelity=Error(0.3))
    here = [one for one in by_rank(job) if one["tree"] != "c"]
    gone = told(job, "c", {PANES: "", PANES + 1: ""}, begin=PANES)
    run = ms.testing.run(an_app(job), events([*gone, *begun(job, "a", "b"), *here]))
    assert windows(run) == [(0, "failure")]
    (window,) = run.stream("counts.windows")
    assert window.value["total"]["high"] is None
    assert window.value["completeness"]["unknown_panes"] == PANES


def test_values_of_several_nodes_in_one_are_refused() -> None:
    """The bounds of a sample need each node's own: a parent hands such panes on one by one."""
    job = counting(shed="drawn")
    both = joined(job, "t", [told(job, node, LOGS[node])[0] for node in "ab"])
    run = ms.testing.run(an_app(job), events([both]))
    (letter,) = run.dead_letters
    assert "must have one node, since the bounds are those of a sample" in letter.error


def test_values_of_several_nodes_in_one_have_bounds() -> None:
    """Where nothing is drawn a parent may merge what its children count: the bounds are the same
    as if each had come alone."""
    job = counting(fidelity=Area(0.9), most=4)
    panes = [[told(job, node, LOGS[node])[pane] for node in NODES] for pane in range(PANES - 2)]
    apart = [one for pane in panes for one in pane]
    merged = [joined(job, "t", pane) for pane in panes]
    runs = [
        ms.testing.run(an_app(job), events([*begun(job, *NODES), *sent]))
        for sent in (apart, merged)
    ]
    assert [run.dead_letters for run in runs] == [[], []]
    said = [{one.key: one.value["bounds"] for one in run.stream("counts")} for run in runs]
    assert said[0] == said[1]
    assert {bound["method"] for bound in said[0].values()} == {"worst case"}
    totals = [run.stream("counts.windows")[0].value["total"] for run in runs]
    assert totals[0] == totals[1]


@pytest.mark.parametrize("order", ["event-time", "arrival"])
def test_panes_on_spark_are_drawn_too(order: Any) -> None:
    """Half of the panes of each node are made, and the others counted."""
    app = ms.App("logs", order=order)
    for node in NODES:
        app.source(node)
    job = Job(
        map=lambda record: [("x", 1)],
        combine=ms.algebra.count(),
        range="10ms",
        pane="1ms",
        fidelity=Area(0.5, drawn=True),
    )
    app.add(job, name="counts", nodes=list(NODES))
    given = [Event(node, 1_000 * ms_, "", {}) for ms_ in range(30) for node in NODES]
    run = ms.testing.run(app, given)
    assert [why for _, why in windows(run)][:2] == ["fidelity", "fidelity"]
    first = run.stream("counts.windows")[0].value
    assert (first["coverage"]["area"], first["records"]) == (0.5, 15)
    assert answers(run)[0]["x"]["count"] == 15


def test_a_window_of_two_blocks_asks_for_what_is_drawn_of_them() -> None:
    """Where less than the part is drawn of it, that is all that can come, and it is enough."""
    job = a_job(range=8, slide=2, fidelity=Area(0.5, drawn=True), seed=5)
    last = 40
    messages = []
    for node in NODES:
        given_up = [pane for pane in range(last) if rank(job.seed, node, pane, 8) >= 4]
        log = dict.fromkeys(range(last), "x")
        messages.append(told(job, node, log, begin=0, lost=given_up))
    run = ms.testing.run(
        an_app(job), events([one for of in zip(*messages, strict=True) for one in of])
    )
    said = run.stream("counts.windows")
    assert {one.value["why"] for one in said} == {"fidelity"}
    assert len(said) == (last - 8) // 2 + 1
    areas = [one.value["coverage"]["area"] for one in said]
    assert min(areas) < 0.5 <= max(areas)
