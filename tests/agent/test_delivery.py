"""The route of each group of messages: through the parent while that works, and at most once to the
root."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.agent.delivery.delivery_plan import PaneDelivery, Remove, Rest, Send
from millstream.agent.delivery.link_health import LinkHealth

PATIENCE = 10.0
STEPS = st.lists(
    st.sampled_from(
        [
            *("taken", "taken", "silent", "later", "never", "root takes", "root is silent"),
            *("accepted", "time", "much time", "another parent", "no parent", "parent lost"),
        ]
    ),
    max_size=60,
)


@given(st.integers(1, 5), STEPS)
def test_all_comes_to_the_root_whatever_the_parents_do(groups: int, steps: list[str]) -> None:
    """A group that one parent was given goes to no other, none is removed before the root has it,
    and in the end, when the root answers, all of them are."""
    delivery, root, now = PaneDelivery(PATIENCE), LinkHealth(), 0.0
    waiting, at_root = {number: [(number, number + 1)] for number in range(groups)}, set[int]()
    parents, name = {"p1": LinkHealth()}, "p1"
    given_to: dict[int, str] = {}

    def act(parent_says: str, root_takes: bool) -> Send | Remove | Rest:
        parent = (name, parents[name]) if name else None
        done = delivery.decide(
            now, waiting, waiting.__getitem__, lambda pane, _: pane in at_root, root, parent
        )
        if isinstance(done, Remove):
            assert done.group in at_root
            del waiting[done.group]
            delivery.removed(done.group)
        elif isinstance(done, Send) and done.by_parent:
            assert given_to.setdefault(done.group, name) == name
            delivery.given(done.group, name, now)
            if parent_says == "taken":
                delivery.taken(done.group)
                parents[name].worked()
            elif parent_says == "never":
                delivery.refused(done.group)
            else:
                parents[name].failed(now, silent=parent_says == "silent", asked=None, drawn=0.5)
        elif isinstance(done, Send):
            if root_takes:
                at_root.add(done.group)
                root.worked()
                del waiting[done.group]
                delivery.removed(done.group)
            else:
                root.failed(now, silent=True, asked=None, drawn=0.5)
        return done

    for step in steps:
        match step:
            case "time" | "much time":
                now += 1 if step == "time" else PATIENCE
            case "another parent":
                name = f"p{len(parents) + 1}"
                parents[name] = LinkHealth()
            case "no parent":
                name = ""
            case "parent lost":
                if name:
                    delivery.lost(name)
                name = ""
            case "accepted":
                at_root.update(list(given_to)[:1])
            case says:
                act(says, says == "root takes")
    name = ""
    for _ in range(100):
        done = act("", root_takes=True)
        now += done.seconds if isinstance(done, Rest) else 0.0
    assert not waiting


def test_what_a_lost_parent_had_goes_to_the_root_at_once() -> None:
    """Messages that a living parent has are waited for, even if there is a new parent."""
    delivery, root, links = PaneDelivery(PATIENCE), LinkHealth(), LinkHealth()
    panes = {1: [(1, 2)]}

    def decide(now: float, parent: str) -> Send | Remove | Rest:
        above = (parent, links)
        return delivery.decide(now, panes, panes.__getitem__, lambda *_: False, root, above)

    assert decide(0.0, "p1") == Send(1, by_parent=True, detour=False)
    delivery.given(1, "p1", 0.0)
    delivery.taken(1)
    assert isinstance(decide(1.0, "p2"), Rest)
    delivery.lost("p1")
    assert decide(1.0, "p2") == Send(1, by_parent=False, detour=True)


def test_where_a_node_begins_is_for_the_root_only() -> None:
    """A message of no panes is never accepted, so a parent could lose it; a group that has one
    among others too."""
    delivery, panes = PaneDelivery(PATIENCE), {1: [(7, 8), (8, 8)]}
    above = ("p1", LinkHealth())
    done = delivery.decide(0.0, panes, panes.__getitem__, lambda *_: False, LinkHealth(), above)
    assert done == Send(1, by_parent=False, detour=False)
