"""Where some panes are unknown, a bound says what is known of the others."""

from __future__ import annotations

from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from windows.messages import a_job, an_app, events, told
from windows.told import a_job as a_bounded_job
from windows.told import data, inside, lost

import millstream as ms
from millstream.windows.bounds.estimates import estimate

NODES = [f"n{number}" for number in range(10)]


def totals(run: ms.testing.Run) -> list[dict[str, Any]]:
    return [one.value["total"] for one in run.stream("counts.windows")]


def test_one_node_of_ten_that_is_missing_hides_nothing_of_the_others() -> None:
    """Nobody knows the most there may be; of the nine nodes that came it is known exactly."""
    job = a_job(bounds="count", latency="5s")
    sent = [one for node in NODES[:9] for one in told(job, node, {0: "xx", 1: "x"}, begin=0)]
    run = ms.testing.run(an_app(job, nodes=NODES), events(sent))
    run.tick(by="1m")
    total = totals(run)[0]
    assert (total["low"], total["high"]) == (27, None)
    assert total["known"] == {"low": 27, "high": 27, "panes": 18, "of": 20}
    (answer,) = (one.value for one in run.stream("counts") if one.key == "x")
    assert answer["bounds"]["known"]["high"] == 27
    summary = run.stream("counts.windows")[0].value
    assert summary["unseen"]["known"]["high"] == 0
    assert summary["missing"] == {"absent": {"panes": 2, "nodes": ["n9"], "more": 0}}
    assert summary["why"] == "latency"


def test_what_was_shed_and_what_is_late_is_known() -> None:
    """Shed and late records were counted, so they are in the upper bound of `known`."""
    job = a_job(range=3, bounds="count", latency="5s")
    sent = told(job, "a", {0: "x", 1: "xx", 2: "x"}, begin=0, lost=[1], late={2: [0, 0, 0]})
    run = ms.testing.run(an_app(job, nodes="ab"), events(sent))
    run.tick(by="1m")
    assert totals(run)[0]["known"] == {"low": 2, "high": 2 + 2 + 3, "panes": 3, "of": 6}


def test_late_records_of_a_pane_that_never_came_are_known() -> None:
    """The pane itself was lost on its way, or waits at a parent; that it had records is known."""
    job = a_job(bounds="count", latency="5s")
    begun, _, second, third = told(job, "a", {0: "x", 1: "x", 2: "x"}, begin=0, late={2: [0, 0]})
    run = ms.testing.run(an_app(job, nodes="a"), events([begun, second, third]))
    run.tick(by="1m")
    total = totals(run)[0]
    assert (total["low"], total["high"]) == (1, None)
    assert total["known"] == {"low": 1, "high": 3, "panes": 1, "of": 2}


@pytest.mark.parametrize("unknown", [0, 3])
def test_nothing_is_added_where_all_is_known(unknown: int) -> None:
    """A bound that has an upper end needs no other."""
    job = a_bounded_job("count", 10)
    told_of: dict[tuple[str, int], Any] = {
        ("a", pane): data(5) if pane % 2 else lost(5) for pane in range(10 - unknown)
    }
    values = {"x": {unit: 2 for unit, of in told_of.items() if of.records}}
    found = estimate(job, ["a"], range(10), told_of, values)
    known = [bound.known is not UNSET for bound in (found.total, found.keys["x"])]
    assert known == [unknown > 0] * 2


kinds = st.sampled_from(["count", "sum"])


@given(
    kinds,
    st.lists(
        st.tuples(st.sampled_from(["data", "lost", "gap", "silent"]), st.integers(0, 6)),
        min_size=6,
        max_size=6,
    ),
)
@settings(max_examples=examples(150))
def test_what_is_known_holds_the_truth_of_what_the_nodes_had(
    kind: str, given: list[tuple[str, int]]
) -> None:
    """For any fate of the panes, the bounds of `known` contain all records that were read: those in
    the answer and those that were given up."""
    job = a_bounded_job(kind, 6, most=1)
    told_of: dict[tuple[str, int], Any] = {}
    values: dict[tuple[str, int], int] = {}
    truth = 0
    for pane, (what, records) in enumerate(given):
        if what == "silent":
            continue
        truth += records
        told_of["a", pane] = lost(records) if what == "lost" else data(records)
        if what == "gap":
            told_of["a", pane].gap = 40
        if what != "lost" and records:
            values["a", pane] = records
    found = estimate(job, ["a"], range(6), told_of, {"x": values} if values else {})
    if found.total.known is not UNSET:
        assert inside(found.total.known, truth)
        assert found.total.known.high is not None
        here = sum(values.values())
        assert found.total.known.low == here


def test_records_whose_time_was_not_believed_are_admitted() -> None:
    """They were set aside as dead letters, so their window is unknown. They count as lost at the
    position of the log where they were read, and every later answer counts them."""
    job = a_job(bounds="count")
    sent = told(job, "a", dict.fromkeys(range(4), "xx"), begin=0)
    first = sent[1]["nodes"]["a"]
    first |= {"dead": 2, "misdated": 2}
    for message in sent[1:]:
        message["nodes"]["a"]["total"] += 2
    run = ms.testing.run(an_app(job, nodes="a"), events(sent))
    assert run.dead_letters == []
    said = [one.value for one in run.stream("counts.windows")]
    assert [(one["total"]["low"], one["total"]["high"]) for one in said] == [(4, 6), (4, 4)]
    assert [one["total"]["method"] for one in said] == ["worst case", "on time"]
    assert said[0]["completeness"]["misdated"] == pytest.approx(2 / 6)
    assert said[1]["completeness"]["misdated"] == pytest.approx(2 / 10)
    account = run.slate("counts.root", "1/0")["account|a"]
    assert (account["dead"], account["misdated"], account["read"]) == (2, 2, 10)


@pytest.mark.parametrize("misdated", [-1, 3, "2", True])
def test_misdated_records_are_among_the_dead(misdated: Any) -> None:
    """A message that contradicts this is refused."""
    job = a_job()
    (message,) = told(job, "a", {0: "x"})
    message["nodes"]["a"] |= {"dead": 2, "misdated": misdated}
    run = ms.testing.run(an_app(job), events([message]))
    (letter,) = run.dead_letters
    assert "misdated must be a whole number, 0 or more, and no more than dead" in letter.error
