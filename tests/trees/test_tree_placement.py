"""The parents of agents: always a forest, whatever is lost, delayed, killed and restarted."""

from __future__ import annotations

from typing import Any

from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from trees.tree_world import World, cycle_in

from millstream.trees.messages import Hello, Member
from millstream.trees.tree_placement import EVERY, LEASE, ROOT

NODES = tuple("abcdefghijkl")
FATES = ("fine", "fine", "fine", "lost", "answer lost", "delayed", "answer delayed")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(NODES), st.booleans()),
        st.tuples(st.just("greet"), st.sampled_from(NODES), st.sampled_from(FATES)),
        st.tuples(st.just("greet"), st.sampled_from(NODES), st.sampled_from(FATES)),
        st.tuples(st.just("kill"), st.sampled_from(NODES)),
        st.tuples(st.just("time"), st.sampled_from([0.5, 5.0, 12.0, 40.0])),
        st.tuples(st.just("calm"), st.sampled_from([5.0, 10.0])),
        st.tuples(st.just("late")),
        st.tuples(st.just("root")),
    ),
    max_size=80,
)


def play(world: World, step: tuple[Any, ...]) -> None:
    match step:
        case ("join", node, serves):
            world.join(node, serves=serves)
        case ("greet", node, fate) if node in world.members:
            world.greet(node, fate)
        case ("kill", node):
            world.members.pop(node, None)
        case ("time", seconds):
            world.now += seconds
        case ("calm", seconds):
            world.run(seconds)
        case ("late",):
            world.deliver_late()
        case ("root",):
            world.restart_root()


def check_root(world: World) -> None:
    """The root's own view is a forest within its bounds."""
    rows = {row.node: row for row in world.root.rows(world.now)}
    parents = {node: row.parent or ROOT for node, row in rows.items()}
    assert cycle_in(parents) == []
    for node, row in rows.items():
        assert 1 <= row.depth <= world.deepest
        assert row.children == sorted(one for one, of in parents.items() if of == node)
        assert not row.children or len(row.children) <= world.fan_out
        assert row.parent is None or row.depth == rows[row.parent].depth + 1


@settings(max_examples=examples(300), deadline=None)
@given(STEPS)
def test_always_a_forest(steps: list[tuple[Any, ...]]) -> None:
    """After each step, the seats that the root has given and those that the agents believe in have
    no cycle, and no agent has more children than it accepts. Once no message is lost any more, all
    agents have the seats that the root gave them, and each reaches the root in few steps over
    living agents."""
    world = World()
    for step in steps:
        play(world, step)
        check_root(world)
        assert cycle_in(world.believed()) == [], step
    world.run(LEASE + 8 * EVERY)
    check_root(world)
    rows = {row.node: row for row in world.root.rows(world.now)}
    assert set(rows) == set(world.members)
    assert world.believed() == {node: row.parent or ROOT for node, row in rows.items()}
    top = [row for row in rows.values() if row.parent is None]
    takers = [row for row in rows.values() if row.address and row.depth < world.deepest]
    room = [row for row in takers if len(row.children) < world.fan_out]
    assert len(top) <= world.fan_out or not [row for row in room if row.parent is not None]


def test_as_flat_as_can_be() -> None:
    """With a fan-out of 3, of 39 agents that all take children 3 are below the root, 9 below these,
    and the others below those."""
    world = World()
    for number in range(39):
        world.join(f"n{number}")
        world.greet(f"n{number}")
    depths = [row.depth for row in world.root.rows(world.now)]
    assert [depths.count(depth) for depth in (1, 2, 3, 4)] == [3, 9, 27, 0]


def test_those_that_take_no_children_make_room() -> None:
    """Ten leaves are all below the root, for want of room; agents that take children come above
    them, as many as there is need of."""
    world = World()
    for number in range(10):
        world.join(f"leaf{number}", serves=False)
        world.greet(f"leaf{number}")
    assert {row.parent for row in world.root.rows(world.now)} == {None}
    for number in range(4):
        world.join(f"parent{number}")
    world.run(60)
    rows = world.root.rows(world.now)
    assert sum(row.parent is None for row in rows) == 3
    assert max(row.depth for row in rows) <= 3
    assert cycle_in(world.believed()) == []


def moved(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {node for node in before if node in after and before[node] != after[node]}


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(5, 60), st.integers(0, 1_000), st.integers(2, 4))
def test_a_change_moves_only_whom_it_concerns(count: int, which: int, fan_out: int) -> None:
    """A join moves nobody else, and a death only the children of the one that died; the others
    keep their parents."""
    world = World(fan_out=fan_out, deepest=8)
    for number in range(count):
        world.join(f"n{number}")
        world.greet(f"n{number}")
    world.run(20)
    before = world.believed()
    world.join("new")
    world.run(20)
    assert moved(before, world.believed()) == set()
    before = world.believed()
    victim = f"n{which % count}"
    del world.members[victim]
    world.run(LEASE + 20)
    children = {node for node, parent in before.items() if parent == victim}
    assert moved(before, world.believed()) == children
    assert cycle_in(world.believed()) == []
    assert victim not in world.believed().values()


def test_an_orphan_is_seated_at_once() -> None:
    """A child whose parent does not answer has another one within one hello, and the parent that
    another has lost is given to nobody until it was heard of."""
    world = World(fan_out=2)
    for node in "abcdefg":
        world.join(node)
        world.greet(node)
    world.run(10)
    parents = world.believed()
    orphan = next(node for node, parent in parents.items() if parent)
    gone = parents[orphan]
    del world.members[gone]
    world.members[orphan].parent_failed(world.members[orphan].seat, world.now)
    world.now += 0.5
    world.greet(orphan)
    assert world.believed()[orphan] != gone
    world.join("new", serves=False)
    world.greet("new")
    assert world.believed()["new"] != gone


def test_a_root_that_begins_anew_leaves_all_where_they_are() -> None:
    """The agents report their parents, and the root moves none of them."""
    world = World()
    for number in range(30):
        world.join(f"n{number}")
        world.greet(f"n{number}")
    world.run(30)
    before = world.believed()
    world.restart_root()
    world.run(60)
    assert world.believed() == before
    assert len(world.root) == 30


def test_messages_of_a_node_are_few_however_many_there_are() -> None:
    """When nothing changes each agent says hello every five seconds, and the root hears only those
    below it."""
    world = World(fan_out=4, deepest=8)
    for number in range(200):
        world.join(f"n{number}")
        world.greet(f"n{number}")
    world.run(60)
    world.hellos = 0
    world.run(100)
    assert world.hellos <= 200 * 100 / EVERY * 1.1
    assert sum(row.parent is None for row in world.root.rows(world.now)) == 4


def test_what_is_left_alone() -> None:
    """News of a node that is older than a lease, or of a process that has ended since."""
    world = World()
    world.root.hello(Hello(Member("a"), [Member("b", age=LEASE + 1)]), 0.0)
    assert [row.node for row in world.root.rows(0.0)] == ["a"]
    world.root.hello(Hello(Member("a", began=7, version="new")), 1.0)
    world.root.hello(Hello(Member("a", began=5, version="old")), 2.0)
    assert [row.version for row in world.root.rows(2.0)] == ["new"]


def test_one_that_leaves_is_gone_at_once() -> None:
    """The agent reports that it leaves, and its children get other parents with their next
    hello."""
    world = World(fan_out=1)
    for node in "ab":
        world.join(node)
        world.greet(node)
    world.run(10)
    assert world.believed() == {"a": ROOT, "b": "a"}
    leaving = world.members.pop("a").hello(world.now, leaving=True)
    world.answer(leaving)
    world.run(10)
    assert world.believed() == {"b": ROOT}


def test_an_agent_that_finds_itself_above_its_parent_leaves_it() -> None:
    """Two that believe to be below each other find out by the path in an answer."""
    world = World()
    one, other = world.join("one"), world.join("other")
    one.seat = type(one.seat)(5, "other", "http://other")
    other.seat = type(other.seat)(5, "one", "http://one")
    world.run(3 * EVERY)
    assert cycle_in(world.believed()) == []
