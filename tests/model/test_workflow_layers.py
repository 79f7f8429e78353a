"""The cuts of a workflow's cycles, and its layers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from model.graphs_of import Graph, an_app, build, layers, update


def test_streams_are_numbered_by_first_mention() -> None:
    """Sources first, then each function's streams in order: the numbers the engine stores."""
    workflow = build([("map", "split", ("orders",), ("b", "a")), ("update", "count", ("a",), ())])
    assert workflow.streams == ("orders", "b", "a")


def test_layers_of_a_chain_and_a_diamond() -> None:
    """An update's layer is its longest path; maps have none, for they are fused."""
    workflow = build(
        [
            ("map", "split", ("orders",), ("a", "b")),
            ("update", "left", ("a",), ("c",)),
            ("map", "between", ("c",), ("d",)),
            ("update", "join", ("b", "d"), ()),
            ("update", "alone", ("orders",), ()),
        ]
    )
    assert layers(workflow) == [["left", "alone"], ["join"]]
    assert workflow.feedback == frozenset()
    assert workflow.step is None


def test_an_update_that_feeds_itself() -> None:
    """A self-loop is one feedback edge, and the update keeps its layer."""
    workflow = build([("update", "score", ("orders", "again"), ("again",))])
    assert workflow.feedback == {("score", "again", "score")}
    assert layers(workflow) == [["score"]]


def test_of_a_cycle_the_edge_declared_last_is_feedback() -> None:
    """Edges are taken in the order of declaration; the one that closes the cycle is feedback."""
    there = ("update", "there", ("orders", "y"), ("x",))
    back = ("update", "back", ("x",), ("y",))
    workflow = build([there, back])
    assert workflow.feedback == {("back", "y", "there")}
    assert layers(workflow) == [["there"], ["back"]]
    workflow = build([back, there])
    assert workflow.feedback == {("there", "x", "back")}
    assert layers(workflow) == [["back"], ["there"]]


def test_a_map_that_closes_a_cycle_is_placed() -> None:
    """A map that emits along a feedback edge needs a shard for its outbox, so it has a layer."""
    workflow = build(
        [
            ("update", "count", ("orders", "again"), ("counted",)),
            ("map", "decide", ("counted",), ("again",)),
        ]
    )
    assert workflow.feedback == {("decide", "again", "count")}
    assert layers(workflow) == [["count"], ["decide"]]


def test_a_cycle_of_maps_only() -> None:
    """Maps may form a cycle: the map that closes it is placed, and the others are fused."""
    workflow = build(
        [
            ("map", "one", ("orders", "b"), ("a",)),
            ("map", "two", ("a",), ("b",)),
        ]
    )
    assert workflow.feedback == {("two", "b", "one")}
    assert layers(workflow) == [["two"]]
    alone = build([("map", "one", ("orders",), ("orders",))])
    assert alone.feedback == {("one", "orders", "one")}
    assert layers(alone) == [["one"]]


def test_the_step_is_the_least_delay_of_feedback() -> None:
    """The horizon may move at once by the least delay, of feedback streams only."""
    app = an_app()
    app.update("orders", "x", "y", publishes=["x", "y", "z"], name="score")(update)
    app.update("z", name="last")(update)
    app.stream("x", delay="3s")
    app.stream("y", delay="2s")
    app.stream("z", delay="1s")
    assert app.workflow().step == 2_000_000
    assert build([("update", "score", ("orders", "x"), ("x",))]).step is None


STREAMS = ("orders", "a", "b", "c", "d")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = [f"f{n}" for n in range(draw(st.integers(1, 6)))]
    some = st.lists(st.sampled_from(STREAMS), unique=True, max_size=3)
    drawn = [
        (draw(st.sampled_from(["map", "update"])), name, draw(some), draw(some)) for name in names
    ]
    there = {"orders", *(stream for *_, publishes in drawn for stream in publishes)}
    return [
        (kind, name, tuple(s for s in reads if s in there) or ("orders",), tuple(writes))
        for kind, name, reads, writes in drawn
    ]


@given(graphs())
def test_any_graph_is_cut_and_layered(graph: Graph) -> None:
    """Without its feedback edges any graph is acyclic, each of those edges is on a cycle, every
    update and every emitter of feedback has one layer, and forward edges never go to a lower one.
    """
    workflow = build(graph)
    edges = {
        (name, stream, reader)
        for _, name, _, publishes in graph
        for stream in publishes
        for _, reader, subscribes, _ in graph
        if stream in subscribes
    }
    assert workflow.feedback <= edges
    forward: dict[str, set[str]] = {name: set() for _, name, _, _ in graph}
    for emitter, _, reader in edges - workflow.feedback:
        forward[emitter].add(reader)

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for following in forward[stack.pop()] - seen:
                seen.add(following)
                stack.append(following)
        return seen

    reached = {name: reachable(name) for name in forward}
    assert not any(name in reached[name] for name in forward), "acyclic"
    for emitter, _, reader in workflow.feedback:
        assert emitter == reader or emitter in reached[reader], "closes a cycle"
    placed = [function.name for layer in workflow.layers for function in layer]
    updates = {name for kind, name, _, _ in graph if kind == "update"}
    assert len(placed) == len(set(placed))
    assert set(placed) == updates | {emitter for emitter, _, _ in workflow.feedback}
    depth = {f.name: number for number, layer in enumerate(workflow.layers) for f in layer}
    for name in placed:
        for following in reached[name] & set(placed):
            assert depth[name] < depth[following]
