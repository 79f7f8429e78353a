"""The news that an agent gets of its job, and whom it asks for it."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
from taking_root import Clock, Root, placed, until

from millstream.agent.delivery import root_decisions as told_module
from millstream.agent.delivery.root_decisions import AVOIDED, RootDecisions
from millstream.agent.delivery.ways import LaidWays
from millstream.agent.delivery.wire import ServerWire
from millstream.trees.messages import NewsQuestion


def told_of(
    root: Root, parent: Root | None = None, said: list[str] | None = None, **ways: bool
) -> tuple[RootDecisions, Clock]:
    say, clock = [].append if said is None else said.append, Clock()
    up = None if parent is None else ServerWire(parent.url, timeout=5, name="parent b")
    laid = LaidWays(ServerWire(root.url, timeout=5, name=f"the root at {root.url}"), up, **ways)
    return RootDecisions(laid, placed("a", "b"), "a", say, clock), clock


def accepted(pane: int, until: int, *nodes: str) -> dict[str, Any]:
    return {"accepted": {"pane": pane, "until": until, "nodes": list(nodes)}}


CLOSED = {"closed": 7, "reducer": "1/0", "of": 1}


def test_panes_of_this_node_that_were_accepted(root: Root) -> None:
    """A run is accepted if all of its panes are, in however many parts; others' panes are not."""
    root.told += [accepted(3, 5, "a", "b"), accepted(5, 6, "a"), accepted(6, 7, "b")]
    told, _ = told_of(root, merges=True)
    assert told.poll()
    assert told.accepted(3, 6)
    assert not told.accepted(3, 7)
    assert not told.accepted(2, 4)


def test_who_sends_to_the_root_itself_asks_for_no_panes(root: Root) -> None:
    """A message that the root has answered is known to be accepted. The agent only asks for
    windows."""
    root.told += [accepted(3, 5, "a"), CLOSED]
    told, _ = told_of(root)
    told.poll()
    assert told.closed(7)
    assert [one.nodes for one in root.asked] == [[]]


def test_when_a_window_was_opened_is_when_we_first_heard_of_it(root: Root) -> None:
    """By our own clock; and a closed one is not open."""
    told, clock = told_of(root)
    root.told.append({"opened": 7})
    told.poll()
    clock.now += 10
    root.told += [{"opened": 7}, {"opened": 8}]
    told.poll()
    assert (told.opened(7), told.opened(8), told.opened(9)) == (1_000.0, 1_010.0, None)
    root.told.append({"closed": 8, "reducer": "1/0", "of": 1})
    told.poll()
    assert told.opened(8) is None


def test_it_asks_only_for_what_is_new(root: Root) -> None:
    """The first request gets all that is known. Later ones get what is new."""
    root.told += [accepted(pane, pane + 1, "a") for pane in range(500)]
    told, _ = told_of(root, merges=True)
    told.poll()
    assert told.accepted(0, 500)
    told.poll()
    assert [one.after for one in root.asked] == [None, 500]


def test_a_parent_is_asked_and_the_root_when_it_is_gone(root: Root) -> None:
    """An agent below a parent asks it alone; while it does not answer, the root; then it again."""
    parent = Root()
    told, clock = told_of(root, parent)
    parent.told.append(CLOSED)
    told.poll()
    assert told.closed(7)
    assert root.asked == []
    parent.stop()
    root.told.append({"closed": 8, "reducer": "1/0", "of": 1})
    told.start()
    until(lambda: told.closed(8))
    told.stop()
    back = Root(parent.port)
    clock.now += AVOIDED
    told, clock = told_of(root, back)
    told.poll()
    assert [one.nodes for one in back.asked] == [["a"]]
    back.stop()


def test_a_parent_asks_for_those_that_ask_it(root: Root) -> None:
    """A child's question is answered with what the parent has heard; the panes of the child are
    asked for from then on, those of before too, and its waiting question is answered then."""
    root.told += [accepted(1, 2, "b"), {"opened": 7}]
    told, _ = told_of(root, merges=True)
    told.poll()
    first = told.answer(NewsQuestion(["b"]))
    assert (first.opened, first.accepted) == ([7], {})
    found = []
    waiting = Thread(
        target=lambda: found.append(
            told.answer(NewsQuestion(["b"], first.life, first.next, wait=20))
        )
    )
    waiting.start()
    told.poll()
    waiting.join(10)
    assert found[0].accepted == {"b": [(1, 2)]}
    assert [one.nodes for one in root.asked] == [["a"], ["b"]]
    told.poll()
    assert root.asked[-1] == NewsQuestion(["a", "b"], "root", 2)


def test_a_root_that_is_away_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of contact is reported once, and all news of that time arrives in the end."""
    monkeypatch.setattr(told_module, "AFTER_SILENCE", 0.01)
    monkeypatch.setattr(told_module, "EVERY", 0.01)
    gone = Root()
    gone.stop()
    said: list[str] = []
    told, _ = told_of(gone, said=said)
    told.start()
    until(lambda: said)
    back = Root(gone.port)
    back.told.append(CLOSED)
    until(lambda: told.closed(7))
    told.check()
    told.stop()
    back.stop()
    assert len(said) == 1
    assert gone.url in said[0]


def test_a_root_without_the_job_is_said_once(root: Root) -> None:
    """The root's answer is reported, and the agent asks again: the application may be about to
    start."""
    said: list[str] = []
    told = RootDecisions(LaidWays(ServerWire(root.url + "/other")), placed("a"), "a", said.append)
    assert not told.poll()
    assert not told.poll()
    assert len(said) == 1
    assert "there is no such job" in said[0]
