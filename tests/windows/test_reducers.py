"""The number of reducers is changed while a job runs, and no answer is another for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from elements.both import check_engine_is_reference, cuttings, lanes, run_in_batches
from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import NODES, a_job, an_app, answers, events, told

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.windows.accounts import residual
from millstream.windows.reducers import BEGINNING, in_force, schemes

PANES = 8
sizes = st.sampled_from([{"range": 2}, {"range": 4, "slide": 2}, {"range": 3, "slide": 1}])
texts = st.lists(st.text("xyz", max_size=3), min_size=PANES, max_size=PANES)


@st.composite
def changing(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, list[str]], list[Event]]:
    """A job's sizes, logs, and what comes: each node's panes in their order, some nodes far ahead
    of others, with changes anywhere between."""
    size = draw(sizes)
    logs = {node: draw(texts) for node in NODES}
    job = a_job(**size)
    begins = {node: draw(st.integers(0, 3)) for node in NODES}
    waiting: dict[str, list[Any]] = {
        node: told(
            job,
            node,
            {pane: text for pane, text in enumerate(log) if pane >= begins[node]},
            begin=begins[node],
            end=PANES,
        )
        for node, log in logs.items()
    }
    waiting[""] = [
        {"tree": "", "reducers": number} for number in draw(st.lists(st.integers(1, 4), max_size=4))
    ]
    sent: list[Any] = []
    while any(waiting.values()):
        sent.append(waiting[draw(st.sampled_from([one for one in waiting if waiting[one]]))].pop(0))
    step = draw(st.sampled_from([0, 1, 2, 10]))  # microseconds between two
    told_at = [one._replace(ts=1_000 + step * at) for at, one in enumerate(events(sent))]
    for node, begin in begins.items():
        logs[node][:begin] = [""] * begin
    return size, logs, told_at


def truth(size: dict[str, Any], logs: dict[str, list[str]], first: int) -> dict[int, Counter[str]]:
    length, slide = size["range"], size.get("slide", size["range"])
    return {
        begin: Counter(
            "".join(text for log in logs.values() for text in log[begin : begin + length])
        )
        for begin in range(0, PANES - length + 1, slide)
        if begin >= first
    }


@given(changing())
@settings(max_examples=examples(70), deadline=None)
def test_the_answers_are_those_of_one_reducer(
    given: tuple[dict[str, Any], dict[str, list[str]], list[Event]],
) -> None:
    """For any changes of the number and any order of the nodes, every window is answered once for
    each key, from all of its panes."""
    size, logs, sent = given
    run = ms.testing.run(an_app(a_job(**size)), sent)
    assert run.dead_letters == []
    first = min(one.value["pane"] for one in sent if "pane" in one.value)
    wanted = truth(size, logs, first)
    assert {begin: Counter(said) for begin, said in answers(run).items()} == wanted
    said = Counter((one.value["from"], one.key) for one in run.stream("counts"))
    assert set(said.values()) <= {1}


@given(changing(), cuttings, st.integers(1, 3), lanes)
@settings(max_examples=examples(40), deadline=None)
def test_the_engine_changes_as_the_reference_does(
    given: tuple[dict[str, Any], dict[str, list[str]], list[Event]],
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """In order of event time, whatever the batches, shards and lanes."""
    size, _, sent = given
    app = an_app(a_job(**size), "event-time")
    check_engine_is_reference(app, sent, cuts, shards, lane)


@given(changing(), cuttings, lanes)
@settings(max_examples=examples(40), deadline=None)
def test_in_order_of_arrival_the_answers_are_the_same(
    given: tuple[dict[str, Any], dict[str, list[str]], list[Event]], cuts: list[int], lane: Lane
) -> None:
    """Batches do not matter to them either."""
    size, logs, sent = given
    engine = run_in_batches(an_app(a_job(**size)), sent, cuts, 2, lane)
    assert engine.letters == []
    first = min(one.value["pane"] for one in sent if "pane" in one.value)
    assert said_by(engine) == truth(size, logs, first)


def said_by(engine: InProcess) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {
        one.value["from"]: Counter() for one in engine.streams["counts.windows"]
    }
    for one in engine.streams.get("counts", ()):
        found[one.value["from"]][one.key] = one.value["value"]
    return found


def test_another_number_in_the_definition_holds_from_the_next_start() -> None:
    """And a number that was set while the job ran stays until the definition's is another."""
    logs = {node: dict.fromkeys(range(PANES), "xyz") for node in NODES}

    def sent(first: int, end: int, *more: Any) -> list[Event]:
        job = a_job()
        panes = [one for node in NODES for one in told(job, node, logs[node])]
        chosen = [one for one in panes if first <= one["pane"] < end]
        return events([*chosen, *more], ts=1_000 * (first + 1))

    engine = run_in_batches(
        an_app(a_job()), sent(0, 2, {"tree": "", "reducers": 2}), [], 2, "one-task"
    )
    engine = InProcess(
        an_app(a_job()).workflow(), 2, store=engine.store, progress=engine.progress, epoch=2
    )
    engine.batch(sent(2, 4))
    assert reducers_of(engine) == {"1/0"}  # all had reached its first pane before the change
    engine.streams.clear()
    engine.batch(sent(4, 6))
    assert reducers_of(engine) == {"2/0", "2/1"}
    other = InProcess(
        an_app(a_job(reducers=3)).workflow(),
        2,
        store=engine.store,
        progress=engine.progress,
        epoch=3,
    )
    other.batch(sent(6, 7))
    other.batch(sent(7, 8))
    assert reducers_of(other) == {"2/0", "2/1"}  # the window of panes 6 and 7 was begun before
    other.batch(
        events([one for node in NODES for one in told(a_job(), node, {8: "x", 9: "y"})], ts=9_000)
    )
    assert reducers_of(other) >= {"3/0", "3/1", "3/2"}
    assert other.letters == engine.letters == []


def reducers_of(engine: InProcess) -> set[str]:
    return {one.value["reducer"] for one in engine.streams.get("counts.windows", ())}


@given(changing())
@settings(max_examples=examples(50), deadline=None)
def test_the_accounts_of_all_numbers_add_up(
    given: tuple[dict[str, Any], dict[str, list[str]], list[Event]],
) -> None:
    """Each record of a node is in the account of one number of reducers."""
    size, logs, sent = given
    run = ms.testing.run(an_app(a_job(**size)), sent)
    read = Counter[str]()
    for reducer, table in run.slates("counts.root").items():
        for node in NODES:
            account = table.get(f"account|{node}")
            if account is not None:
                assert residual(account) == 0
                read[node] += account["read"] if reducer.endswith("/0") else 0
    assert read == Counter({node: len("".join(log)) for node, log in logs.items()})


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), max_size=4), st.integers(0, 20))
def test_all_numbers_between_two_panes(entries: list[tuple[int, int]], first: int) -> None:
    """The result has the numbers in force at any pane between them."""
    schedule = [[BEGINNING, 1], *([pane, number] for pane, number in sorted(entries))]
    wanted = {in_force(schedule, pane) for pane in range(first, first + 6)}
    assert wanted <= {*schemes(schedule, first, first + 5)}
