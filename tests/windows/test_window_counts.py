"""The counts of open windows, which are changed with each mark, are those of the marks."""

from __future__ import annotations

from typing import Any

from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from windows.messages import NODES, Sent, a_job, an_app, events, told

import millstream as ms
from millstream.windows import Temporal
from millstream.windows.accounts import window_entry, window_of
from millstream.windows.board.node_places import NodePlace
from millstream.windows.board.pane_marks import State, late_in, pane_in, with_late
from millstream.windows.board.window_counts import tally_of

SIZES = ({"range": 3}, {"range": 4, "slide": 2}, {"range": 3, "slide": 1})


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, int], list[Sent]]:
    """Generates nodes that begin anywhere, lose panes, find late records, end, continue, or begin
    again elsewhere, in turn."""
    size = draw(st.sampled_from(SIZES))
    job = a_job(**size)
    waiting: dict[str, list[Sent]] = {}
    for node in NODES:
        waiting[node] = []
        at = draw(st.integers(0, 6))
        for _ in range(draw(st.integers(0, 3))):
            end = at + draw(st.integers(1, 4))
            lost = draw(st.sets(st.integers(at, end)))
            late = draw(st.dictionaries(st.integers(at, end), st.lists(st.integers(0, 12))))
            said = told(
                job,
                node,
                dict.fromkeys(range(at, end), "x"),
                begin=at,
                lost=lost,
                late={pane: [one for one in of if one < pane] for pane, of in late.items()},
            )
            ends = draw(st.booleans())
            waiting[node] += [*said, {**said[0], "pane": end, "until": end, "over": True}][
                : None if ends else -1
            ]
            at = draw(st.integers(max(0, at - 2), end + 3))
    sent: list[Sent] = []
    while any(waiting.values()):
        chosen = draw(st.sampled_from([node for node in NODES if waiting[node]]))
        sent.append(waiting[chosen].pop(0))
    return size, sent


@given(histories())
@settings(max_examples=examples(150), deadline=None)
def test_counts_are_those_of_the_marks(given: tuple[dict[str, int], list[Sent]]) -> None:
    """This holds for every window that is open at the end, pane by pane and node by node."""
    size, sent = given
    job = a_job(**size, fidelity=Temporal(1.0))
    run = ms.testing.run(an_app(job), events(sent))
    assert run.dead_letters == []
    table = dict(run.slates("counts.root")["1/0"]) if sent else {"meta": {"open": []}}
    places = {node: NodePlace(**table[f"node|{node}"]) for node in NODES if f"node|{node}" in table}
    marks: dict[tuple[str, int], State] = {}
    for entry in table:
        if entry.startswith("board|"):
            for node, mark in table[entry].items():
                marks[node, pane_in(entry)] = "lost" if mark[0] == "lost" else "received"
    late = late_in((entry, table[entry]) for entry in table if entry.startswith("tardy|"))
    for number in table["meta"]["open"]:
        panes = job.span.panes_of(number)
        rows: dict[str, list[Any]] = {
            node: [
                with_late(
                    marks.get((node, pane)) or places.get(node, NodePlace()).silent(pane),
                    node in late.get(pane, {}),
                )
                for pane in panes
            ]
            for node in NODES
        }
        columns = list(zip(*rows.values(), strict=True))
        window = window_of(table[window_entry(number)])
        found = tally_of(window, len(NODES), len(panes))
        assert found.received == sum(row.count("received") for row in rows.values())
        assert found.lost == sum(row.count("lost") for row in rows.values())
        assert found.late == sum(row.count("late") for row in rows.values())
        assert found.whole == sum(column.count("received") == len(NODES) for column in columns)
        assert found.hurt == sum("lost" in column for column in columns)
        assert found.some == sum("received" in column for column in columns)
        whole = [row for row in rows.values() if row.count("received") == len(panes)]
        assert found.whole_nodes_count == len(whole)
        assert found.some_nodes == sum("received" in row for row in rows.values())
        assert found.hurt_nodes == sum("lost" in row for row in rows.values())
        assert found.gone_nodes == sum(row.count("lost") == len(panes) for row in rows.values())
