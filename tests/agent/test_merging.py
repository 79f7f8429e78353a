"""The messages that a parent holds and merges. Each pane of each node counts once, whatever
happens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from taking_root import Scoreboard, message, no_map, placed

import millstream as ms
from millstream.agent.delivery.bodies import LONGEST, body_of
from millstream.agent.tree.active_panes import PATIENCE, ActivePanes, heard, patience_of, together

TREE = "top"


def said(node: str, pane: int, until: int | None = None, **partials: int) -> bytes:
    return body_of(message(node, pane, until, TREE, **partials))


def read(lines: Iterable[bytes]) -> list[tuple[set[str], int, int, dict[str, Any]]]:
    """Returns for each line its nodes, panes and partials."""
    found = map(json.loads, lines)
    return [(set(one["nodes"]), one["pane"], one["until"], one["partials"]) for one in found]


def active(*nodes: str, patience: float = 5.0, **options: Any) -> ActivePanes:
    return ActivePanes(placed(*nodes).job, nodes, patience, **options)


def test_a_pane_goes_on_when_all_have_said_something_of_it() -> None:
    """A pane is held until the last of the nodes has reported it, and is then merged and sent at
    once."""
    held = active("a", "b", "c")
    held.put(heard(said("a", 7, x=1, y=1)), 0.0)
    held.put(heard(said("b", 7, x=2)), 1.0)
    assert held.due(1.0) == []
    held.put(heard(said("c", 7)), 2.0)
    assert held.next_due() == -inf
    lines = held.due(2.0)
    assert read(lines) == [({"a", "b", "c"}, 7, 8, {"x": 3, "y": 1})]
    assert json.loads(lines[0])["tree"] == TREE
    assert json.loads(lines[0])["span"] == message("a", 7).span
    assert json.loads(lines[0])["nodes"]["b"]["records"] == 2
    assert (held.bytes, held.next_due()) == (0, inf)


def test_patience_ends() -> None:
    """When the patience ends, the messages that are there are merged. Later ones are forwarded
    unchanged."""
    held = active("a", "b", "c", patience=5.0)
    held.put(heard(said("a", 7, x=1)), 10.0)
    held.put(heard(said("b", 7, x=2)), 12.0)
    assert held.next_due() == 15.0
    assert held.due(14.9) == []
    assert read(held.due(15.0)) == [({"a", "b"}, 7, 8, {"x": 3})]
    late = said("c", 7, x=4)
    held.put(heard(late), 16.0)
    assert held.due(16.0) == [late]
    assert held.forwarded == 1


def test_runs_of_empty_panes_are_merged_if_they_are_equal() -> None:
    """Equal runs become one; a run that is not equal to another stays whole."""
    held = active("a", "b", "c")
    for node, pane, until in (("a", 3, 90), ("b", 3, 90), ("c", 3, 5), ("c", 5, 90)):
        held.put(heard(said(node, pane, until)), 0.0)
    found = sorted(read(held.due(0.0)), key=lambda one: one[1:3])
    assert found == [({"c"}, 3, 5, {}), ({"a", "b"}, 3, 90, {}), ({"c"}, 5, 90, {})]


def test_a_run_says_something_of_each_of_its_panes() -> None:
    """A pane does not wait for a node that has told of a run with it."""
    held = active("a", "b")
    held.put(heard(said("a", 4, x=1)), 0.0)
    held.put(heard(said("b", 2, 9)), 0.0)
    assert read(held.due(0.0)) == [({"a"}, 4, 5, {"x": 1})]


def test_a_run_goes_on_when_all_its_panes_were_told_of() -> None:
    """Panes reported one by one count as much as a run."""
    held = active("a", "b")
    held.put(heard(said("a", 3, 5)), 0.0)
    held.put(heard(said("b", 3)), 0.0)
    assert read(held.due(0.0)) == [({"b"}, 3, 4, {})]
    held.put(heard(said("b", 4)), 0.0)
    assert sorted(read(held.due(0.0)), key=lambda one: one[1]) == [
        ({"a"}, 3, 5, {}),
        ({"b"}, 4, 5, {}),
    ]


def test_where_a_node_begins_goes_on_at_once() -> None:
    """And panes before it do not wait for that node."""
    held = active("a", "b")
    held.put(heard(said("a", 4, x=1)), 0.0)
    begins = said("b", 9, 9)
    held.put(heard(begins), 0.0)
    assert held.due(0.0) == [begins, said("a", 4, x=1)]
    held.put(heard(said("a", 9, x=1)), 0.0)
    assert held.due(0.0) == []


def test_a_repeat_is_dropped_and_half_of_one_goes_on() -> None:
    """A message that is held is not held twice. A message that overlaps with another one in part
    cannot be merged with it."""
    held = active("a", "b", "c")
    held.put(heard(said("a", 7, x=1)), 0.0)
    size = held.bytes
    held.put(heard(said("a", 7, x=1)), 0.0)
    assert (held.bytes, held.repeated) == (size, 1)
    [both] = together(placed().job, [heard(said("a", 7, x=1)), heard(said("b", 7, x=2))])
    held.put(heard(both), 0.0)
    assert held.due(0.0) == [both]


def test_panes_of_other_windows_are_not_merged() -> None:
    """A child with another file has other panes of the same numbers; the root will refuse them,
    and must not lose those of the others with them."""
    other = body_of(replace(message("b", 7, tree=TREE, x=2), span="time/1/1/1"))
    lines = together(placed("a", "b").job, [heard(said("a", 7, x=1)), heard(other)])
    assert sorted(lines) == sorted([said("a", 7, x=1), other])


def test_what_nobody_wants_is_not_held() -> None:
    """A pane whose windows are closed is not worth the wait."""
    held = active("a", "b", unwanted=lambda pane: pane < 5)
    held.put(heard(said("a", 4, x=1)), 0.0)
    held.put(heard(said("a", 5, x=1)), 0.0)
    assert held.due(0.0) == [said("a", 4, x=1)]


def test_a_sample_needs_the_values_of_each_node() -> None:
    """For a job with bounds from a sample, messages with values are forwarded together and
    unmerged. Messages without values are merged."""
    lines = [said("a", 7, x=1), said("c", 7), said("b", 7, x=2), said("d", 7)]
    found = together(placed(bounds="sum", shed="drawn").job, [heard(line) for line in lines])
    assert found[:2] == [lines[0], lines[2]]
    assert read(found[2:]) == [({"c", "d"}, 7, 8, {})]


def test_values_are_merged_as_the_job_says() -> None:
    """Without combine all values are kept, by node; with an algebra its own merging is used."""
    lines = [body_of(replace(message("b", 7, None, TREE), partials={"k": [3]}))]
    lines += [body_of(replace(message("a", 7, None, TREE), partials={"k": [1, 2], "l": [9]}))]
    job = ms.windows.Job(map=no_map, range="10s")
    [line] = together(job, list(map(heard, lines)))
    assert read([line])[0][3] == {"k": [1, 2, 3], "l": [9]}
    job = ms.windows.Job(map=no_map, range="10s", combine=ms.algebra.max())
    write, lift = job.merging.write, job.merging.lift
    lines = [
        body_of(replace(message(node, 7, None, TREE), partials={"k": write(lift("k", value))}))
        for node, value in (("a", 3), ("b", 8), ("c", 5))
    ]
    [line] = together(job, list(map(heard, lines)))
    assert read([line])[0][3] == {"k": write(lift("k", 8))}


def test_what_cannot_be_merged_goes_on_as_it_came() -> None:
    """Values that `combine` fails on, and those that one line cannot hold."""
    bad = [
        body_of(replace(message(node, 7, None, TREE), partials={"x": value}))
        for node, value in (("a", 1), ("b", "text"))
    ]
    assert together(placed().job, list(map(heard, bad))) == bad
    large = [
        said(node, 7, **{f"{node} {number} {'x' * 200}": 1 for number in range(LONGEST // 400)})
        for node in "ab"
    ]
    assert sum(map(len, large)) > LONGEST > max(map(len, large))
    assert together(placed().job, list(map(heard, large))) == large


@pytest.mark.parametrize(
    ("latency", "below", "seconds"),
    [(None, False, PATIENCE), (None, True, PATIENCE / 2), ("8s", False, 4.0), ("8s", True, 2.0)],
)
def test_patience_comes_from_the_latency(latency: Any, below: bool, seconds: float) -> None:
    """Half of it; half of that for a parent which another parent waits for."""
    assert patience_of(placed(latency=latency).job, int(below)) == seconds


NODES = ("a", "b", "c")
Step = tuple[str, int]
Logs = dict[str, list[bytes]]
LOG = st.lists(st.integers(0, 3), min_size=1, max_size=5)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "again", "tick", "lost", "crash", "direct"]),
        st.integers(0, 14),
    ),
    max_size=40,
)


def logs_of(drawn: list[list[int]]) -> Logs:
    """The messages of each node: a number is a pane with it as its value; 0 and 3 a run."""
    logs: Logs = {}
    for node, panes in zip(NODES, drawn, strict=True):
        logs[node], pane = [], 0
        for value in panes:
            length = {0: 1, 3: 3}.get(value, 1)
            values = {"x": value, f"only {node}": 1} if value in (1, 2) else {}
            logs[node].append(said(node, pane, pane + length, **values))
            pane += length
    return logs


def plain(logs: Logs) -> Scoreboard:
    """Returns the state of a root that gets the messages of each node directly, once."""
    board = Scoreboard()
    for line in (line for lines in logs.values() for line in lines):
        assert board.take(line)
    return board


class Tree:
    """All nodes below one parent, which is below another, which is below the root.

    Either parent may forget all that it holds, and any request may be lost on its way up.
    """

    def __init__(self, logs: Logs) -> None:
        self.messages = [line for lines in logs.values() for line in lines]
        self.board, self.now, self.left = Scoreboard(), 0.0, set[tuple[str, int]]()
        self.parents = [self.fresh(0), self.fresh(1)]

    def fresh(self, level: int) -> ActivePanes:
        return active(*NODES, patience=(2.0, 4.0)[level])

    def up(self, level: int, lost: bool = False) -> None:
        """Send on what is due at a parent."""
        for line in self.parents[level].due(self.now):
            if level == 0 and not lost:
                self.parents[1].put(heard(line), self.now)
            elif not lost:
                self.take(line)

    def take(self, line: bytes) -> None:
        for nodes, pane, until, _ in read([line]):
            self.left |= {(node, one) for node in nodes for one in range(pane, until)}
        self.board.take(line)

    def step(self, kind: str, number: int) -> None:
        line = self.messages[number % len(self.messages)]
        if kind in ("send", "again"):
            self.parents[0].put(heard(line), self.now)
        elif kind == "tick":
            self.now += number / 3
        elif kind == "lost":
            self.up(number % 2, lost=True)
        elif kind == "crash":
            self.parents[number % 2] = self.fresh(number % 2)
        elif kind == "direct":
            self.take(line)
        self.up(0)
        self.up(1)


@given(st.tuples(LOG, LOG, LOG), STEPS)
def test_each_pane_of_each_node_counts_once(
    drawn: tuple[list[int], ...], steps: list[Step]
) -> None:
    """Two levels of parents, any order, repeats, losses, crashes and messages sent past them: at
    the root a message is taken whole or not at all, and when nodes have sent again what was not
    taken, all is as if each had sent its messages there once."""
    logs = logs_of(list(drawn))
    tree = Tree(logs)
    for step in steps:
        tree.step(*step)
    for line in tree.messages:
        [(nodes, pane, until, _)] = read([line])
        mine = {(node, one) for node in nodes for one in range(pane, until)}
        taken = mine & tree.board.panes
        assert not taken or taken == mine, "a part of a message was taken"
        if not taken:
            tree.take(line)
    whole = plain(logs)
    assert (tree.board.panes, tree.board.values) == (whole.panes, whole.values)


@given(st.tuples(LOG, LOG, LOG), STEPS)
def test_nothing_stays_with_a_parent(drawn: tuple[list[int], ...], steps: list[Step]) -> None:
    """If nothing is lost, then each message that came to a parent has left both when their patience
    is over, and they hold nothing."""
    logs = logs_of(list(drawn))
    tree = Tree(logs)
    came: set[tuple[str, int]] = set()
    for kind, number in steps:
        if kind in ("send", "again", "tick", "direct"):
            tree.step(kind, number)
        if kind in ("send", "again", "direct"):
            [(nodes, pane, until, _)] = read([tree.messages[number % len(tree.messages)]])
            came |= {(node, one) for node in nodes for one in range(pane, until)}
    tree.now += 100
    tree.up(0)
    tree.now += 100
    tree.up(1)
    assert tree.left == came
    assert [parent.bytes for parent in tree.parents] == [0, 0]


@given(st.permutations(range(9)), st.lists(st.integers(0, 9), min_size=9, max_size=9))
def test_merged_values_are_those_of_plain_merging(order: list[int], values: list[int]) -> None:
    """In whatever order they come, if no patience ends each pane is one message with all values."""
    held = active(*NODES)
    lines = [said(NODES[n % 3], n // 3, x=values[n], **{NODES[n % 3]: 1}) for n in range(9)]
    for number in order:
        held.put(heard(lines[number]), 0.0)
    found = {pane: (nodes, partials) for nodes, pane, _, partials in read(held.due(0.0))}
    assert found == {
        pane: (
            set(NODES),
            {"x": sum(values[3 * pane : 3 * pane + 3]), "a": 1, "b": 1, "c": 1},
        )
        for pane in range(3)
    }


def test_children_come_and_go() -> None:
    """A new child is waited for from the next pane on. A child that is gone is not waited for."""
    panes = ActivePanes(placed("a", "b", "c").job, {"a", "b"}, PATIENCE)
    panes.put(heard(said("a", 1, x=1)), 0.0)
    panes.expect({"a", "b", "c"})
    panes.put(heard(said("b", 1, x=1)), 0.0)
    assert len(panes.due(0.0)) == 1, "of c nothing was to be heard of this pane"
    for node in ("a", "b"):
        panes.put(heard(said(node, 2, x=1)), 0.0)
    assert panes.due(0.0) == [], "c is waited for"
    panes.expect({"a", "b"})
    assert len(panes.due(0.0)) == 1


def test_messages_of_other_trees_stay_apart() -> None:
    """A root that takes each tree by itself could not tell what came twice."""
    found = [heard(body_of(message("a", 1, tree="a", x=1))), heard(body_of(message("b", 1, x=1)))]
    assert len(together(placed().job, found)) == 2


def test_a_log_that_is_over_is_not_waited_for() -> None:
    """A node that reports the end of its log sends nothing more."""
    panes = ActivePanes(placed("a", "b").job, {"a", "b"}, PATIENCE)
    over = body_of(replace(message("b", 1, 1), over=True))
    panes.put(heard(over), 0.0)
    assert panes.due(0.0) == [over]
    panes.put(heard(said("a", 5, x=1)), 0.0)
    assert panes.due(0.0) == [said("a", 5, x=1)]
