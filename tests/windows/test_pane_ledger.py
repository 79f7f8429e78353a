"""Panes are accepted once, whoever brings them, and the nodes' counts are compared."""

from __future__ import annotations

from collections import Counter
from typing import Any

from elements.both import check_engine_is_reference, cuttings, lanes
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from windows.messages import Sent, a_job, an_app, answers, as_json, events, joined, on_told, told

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.windows.accounts import residual
from millstream.windows.panes.message import Message, manifest
from millstream.windows.panes.pane_ledger import PaneRun, has_all, has_any, put

JOB = a_job()
PANES = 6
logs = st.fixed_dictionaries(
    {node: st.lists(st.text("xy", max_size=3), min_size=PANES, max_size=PANES) for node in "abc"}
)
Logs = dict[str, list[str]]


def singles(given: Logs) -> dict[tuple[str, int], Sent]:
    """The message of each node and pane."""
    return {
        (node, message["pane"]): message
        for node, texts in given.items()
        for message in told(JOB, node, dict(enumerate(texts)), tree="t")
    }


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Logs, list[Sent]]:
    """Generates logs and their messages: single panes and merged ones, in any order and repeated,
    by different parents. In the end each node sends the panes of whose acceptance it was not told,
    as its outbox does."""
    given = draw(logs)
    one = singles(given)
    sent: list[Sent] = []
    for _ in range(draw(st.integers(0, 12))):
        pane = draw(st.integers(0, PANES - 1))
        nodes = draw(st.sets(st.sampled_from("abc"), min_size=1))
        parts = [one[node, pane] for node in sorted(nodes)]
        sent.append(joined(JOB, "t", parts) if len(parts) > 1 else parts[0])
    sent += draw(st.permutations([*one.values()]))
    return given, [by_way_of(draw(ways), message) for message in sent]


ways = st.sampled_from(["t", "u", None])


def by_way_of(tree: str | None, message: Sent) -> Sent:
    """The message as it comes by a parent; None: of an agent that says nothing of its tree."""
    if tree is None:
        return {name: said for name, said in message.items() if name != "tree"}
    return {**message, "tree": tree}


def truth(given: Logs) -> dict[int, Counter[str]]:
    return {
        first: Counter(
            "".join(text for texts in given.values() for text in texts[first : first + 2])
        )
        for first in range(0, PANES, 2)
    }


@given(arrivals())
@settings(max_examples=examples(60))
def test_every_pane_is_taken_exactly_once(given: tuple[Logs, list[Sent]]) -> None:
    """In whatever order and company it comes, and however often."""
    log, messages = given
    run = ms.testing.run(an_app(JOB), events(messages))
    assert run.dead_letters == []
    assert answers(run) == truth(log)
    accepted = {
        (node, one["accepted"]["pane"])
        for one in on_told(run)
        if "accepted" in one
        for node in one["accepted"]["nodes"]
    }
    assert accepted == {(node, pane) for node in "abc" for pane in range(PANES)}
    table = run.slate("counts.root", "1/0")
    for node, texts in log.items():
        found = table.get(f"account|{node}", dict.fromkeys(("read", "on_time"), 0))
        assert found["read"] == found["on_time"] == len("".join(texts))


@st.composite
def overlapping(draw: st.DrawFn) -> tuple[dict[str, list[int]], list[Sent]]:
    """Counts of records by node and pane, and messages of runs of panes of one node or several, in
    any order and overlapping; a run of more than one pane is of panes without records."""
    counts = {
        node: draw(st.lists(st.integers(0, 2), min_size=PANES, max_size=PANES)) for node in "abc"
    }
    totals = {node: [sum(of[: pane + 1]) for pane in range(PANES)] for node, of in counts.items()}
    sent: list[Sent] = []
    for _ in range(draw(st.integers(1, 25))):
        pane = draw(st.integers(0, PANES - 1))
        until = draw(st.integers(pane + 1, PANES))
        nodes = draw(st.sets(st.sampled_from("abc"), min_size=1))
        if any(sum(counts[node][pane:until]) for node in nodes):
            until = pane + 1
        manifests = {}
        for node in sorted(nodes):
            told = manifest("data" if counts[node][pane] else "empty", totals[node][until - 1])
            told.records = counts[node][pane] if until == pane + 1 else 0
            manifests[node] = told
        records = sum(of.records for of in manifests.values())
        partials = {"x": records} if records else {}
        message = Message(
            pane=pane, until=until, nodes=manifests, partials=partials, span=JOB.span.text
        )
        sent.append(by_way_of(draw(ways), as_json(message)))
    return counts, sent


@given(overlapping())
@settings(max_examples=examples(80), deadline=None)
def test_no_pane_is_taken_twice_and_every_record_is_accounted_for(
    given: tuple[dict[str, list[int]], list[Sent]],
) -> None:
    """For any overlaps a message is accepted as a whole or not at all."""
    counts, messages = given
    run = ms.testing.run(an_app(JOB), events(messages))
    assert run.dead_letters == []
    taken = Counter[tuple[str, int]]()
    for message in messages:
        panes = range(message["pane"], message["until"])
        units = [(node, pane) for node in message["nodes"] for pane in panes]
        if not any(taken[unit] for unit in units):
            taken.update(units)
    ledger = run.slate("counts.ledger", "")
    for node in "abc":
        runs = ledger.get("node|" + node, {"runs": []})["runs"]
        panes = [pane for first, end, *_ in runs for pane in range(first, end)]
        assert sorted(panes) == sorted(pane for of, pane in taken if of == node)
        account = run.slate("counts.root", "1/0").get(f"account|{node}")
        on_time = sum(counts[node][pane] for pane in panes)
        assert on_time == (0 if account is None else account["on_time"])
        assert account is None or residual(account) == 0


def test_a_node_that_moves_to_another_parent_is_not_counted_twice() -> None:
    """Its panes came by one parent; it sends them again by another, and by none."""
    sent = told(JOB, "a", {0: "xx", 1: "x"}, tree="b")
    again = [by_way_of("c", one) for one in sent] + [by_way_of(None, one) for one in sent]
    run = ms.testing.run(an_app(JOB, nodes="a"), events([*sent, *again]))
    assert answers(run) == {0: {"x": 3}}
    assert run.slate("counts.ledger", "")["meta"]["repeated"] == 4


def test_the_source_of_panes_needs_no_field_of_a_message() -> None:
    """Agents need not say whose tree they are of."""
    (source,) = an_app(JOB).workflow().sources
    message = by_way_of(None, told(JOB, "a", {0: "x"})[0])
    assert source.extractor()(message, 7) == (7, "")


@given(arrivals(), cuttings, st.integers(1, 3), lanes)
@settings(max_examples=examples(25))
def test_the_engine_takes_as_the_reference_does(
    given: tuple[Logs, list[Sent]], cuts: list[int], shards: int, lane: Lane
) -> None:
    """This holds for any batches, shards and lanes."""
    app = an_app(a_job(reducers=2), "event-time")
    check_engine_is_reference(app, events(given[1]), cuts, shards, lane)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.dictionaries(st.integers(0, 7), st.integers(1, 3)),
)
def test_what_the_reader_has_read_is_compared_where_panes_meet(
    counts: list[int], random: Any, lost: dict[int, int]
) -> None:
    """Records that a node has read but not reported are found, for any order of its panes. While a
    pane is missing it is not compared."""
    panes, total = [], 0
    for pane, count in enumerate(counts):
        total += count + lost.get(pane, 0)
        panes.append((pane, replace(manifest("data", total), records=count)))
    random.shuffle(panes)
    runs: list[PaneRun] = []
    read = 0
    for pane, of in panes:
        assert not has_any(runs, pane, pane + 1)
        read += put(runs, pane, pane + 1, of, 0)
        assert has_all(runs, pane, pane + 1)
    missing = sum(count for pane, count in lost.items() if 0 < pane < len(counts))
    said = {"read": read, "on_time": sum(counts), "late": 0, "shed": 0, "dead": 0}
    assert residual(said) == missing
    assert len(runs) == 1


def test_a_node_that_reads_its_log_over_again_counts_anew() -> None:
    """A node without its state begins with panes that it has sent. They are not accepted again."""
    before = told(JOB, "a", {0: "xx", 1: "x", 2: "y"}, begin=0)
    after = told(JOB, "a", {1: "x", 2: "y", 3: "xx"}, begin=1)
    run = ms.testing.run(an_app(JOB), events([*before, *after]))
    assert run.slate("counts.ledger", "")["meta"]["repeated"] == 2
    account = run.slate("counts.root", "1/0")["account|a"]
    assert (account["read"], residual(account)) == (6, 0)


def test_a_node_that_goes_on_keeps_its_count() -> None:
    """After a stop, at a pane that it has not sent, even if later ones were sent before."""
    panes = told(JOB, "a", {0: "xx", 1: "x", 2: "y", 3: "z"}, begin=0)
    begun, first, second, third, fourth = panes
    at = {**begun, "pane": 1, "until": 1, "nodes": {"a": {**begun["nodes"]["a"], "total": 2}}}
    run = ms.testing.run(an_app(JOB), events([begun, first, third, at, second, fourth]))
    assert run.slate("counts.ledger", "")["node|a"]["life"] == 0
    account = run.slate("counts.root", "1/0")["account|a"]
    assert (account["read"], residual(account)) == (5, 0)


def test_a_node_that_has_lost_what_it_knew_counts_anew() -> None:
    """The node begins with a lower count than it had reported, which shows the loss. There is no
    residual then."""
    before = told(JOB, "a", {0: "xx", 1: "x", 2: "y"}, begin=0)
    after = told(JOB, "a", {2: "y", 3: "x", 4: ""}, begin=2)
    run = ms.testing.run(an_app(JOB), events([*before[:-1], *after]))
    assert run.slate("counts.ledger", "")["node|a"]["life"] == 1
    account = run.slate("counts.root", "1/0")["account|a"]
    assert (account["read"], residual(account)) == (5, 0)
