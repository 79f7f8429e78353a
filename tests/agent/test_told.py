"""What an agent learns from its root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from taking_root import Clock, Root, placed, until

from millstream.agent import told as told_module
from millstream.agent.told import LOOK_BACK, Told
from millstream.agent.wire import Wire


@pytest.fixture
def root() -> Iterator[Root]:
    server = Root()
    yield server
    server.stop()


def told_of(root: Root, said: list[str] | None = None, clock: Clock | None = None) -> Told:
    say = [].append if said is None else said.append
    return Told(Wire(root.url), placed("a", "b"), "a", say, clock or Clock())


def accepted(pane: int, until: int, *nodes: str) -> dict[str, object]:
    return {"accepted": {"pane": pane, "until": until, "nodes": list(nodes)}}


def test_panes_of_this_node_that_were_accepted(root: Root) -> None:
    """A run is accepted if all of its panes are, in however many parts; others' panes are not."""
    root.told += [accepted(3, 5, "a", "b"), accepted(5, 6, "a"), accepted(6, 7, "b")]
    told = told_of(root)
    assert not told.poll()
    assert told.accepted(3, 6)
    assert not told.accepted(3, 7)
    assert not told.accepted(2, 4)


def test_a_window_is_closed_when_all_its_reducers_have_closed_it(root: Root) -> None:
    """Each window has the reducers of its scheme; one that says it twice counts once."""
    told = told_of(root)
    root.told += [
        {"closed": 7, "reducer": "2/0", "of": 2},
        {"closed": 7, "reducer": "2/0", "of": 2},
        {"closed": 8, "reducer": "1/0", "of": 1},
    ]
    told.poll()
    assert (told.closed(7), told.closed(8), told.closed(9)) == (False, True, False)
    root.told.append({"closed": 7, "reducer": "2/1", "of": 2})
    told.poll()
    assert told.closed(7)


def test_when_a_window_was_opened_is_when_we_first_heard_of_it(root: Root) -> None:
    """By our own clock; and a closed one is not open."""
    clock = Clock()
    told = told_of(root, clock=clock)
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
    """It begins with the last thousand records, reads page after page, and repeats none."""
    root.told += [accepted(pane, pane + 1, "a") for pane in range(LOOK_BACK + 500)]
    told = told_of(root)
    assert not told.poll()
    assert told.accepted(500, LOOK_BACK + 500)
    assert not told.accepted(499, 500)
    root.told += [accepted(pane, pane + 1, "a") for pane in range(2_000, 3_500)]
    assert told.poll(), "there is a second page"
    assert not told.poll()
    assert told.accepted(2_000, 3_500)


def test_a_log_that_begins_anew_is_read_from_its_start(root: Root) -> None:
    """A root with a new store has fewer records than we have seen."""
    root.told += [{"opened": 1}] * 10
    told = told_of(root)
    told.poll()
    root.told[:] = [accepted(3, 4, "a")]
    assert told.poll()
    told.poll()
    assert told.accepted(3, 4)


def test_records_that_are_gone_are_passed_over(root: Root) -> None:
    """What the root's retention has removed is not waited for."""
    root.told += [{"opened": 1}]
    told = told_of(root)
    told.poll()
    root.told += [{"opened": 2}, {"opened": 3}]
    root.first_told = 2
    told.poll()
    assert (told.opened(2), told.opened(3)) == (None, 1_000.0)


def test_what_is_not_understood_is_left_alone(root: Root) -> None:
    """A newer root may tell more."""
    root.told += ["word", {"paused": 3}, {"accepted": "all"}, {"closed": 7}, None, {"opened": 4}]
    told = told_of(root)
    told.poll()
    assert told.opened(4) == 1_000.0
    assert not told.closed(7)


def test_a_root_that_is_away_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said once that nothing is heard, and what was told meanwhile is known in the end."""
    monkeypatch.setattr(told_module, "AFTER_SILENCE", 0.01)
    monkeypatch.setattr(told_module, "EVERY", 0.01)
    gone = Root()
    gone.stop()
    said: list[str] = []
    told = told_of(gone, said)
    told.start()
    until(lambda: said)
    back = Root(gone.port)
    back.told.append({"closed": 7, "reducer": "1/0", "of": 1})
    until(lambda: told.closed(7))
    told.check()
    told.stop()
    back.stop()
    assert len(said) == 1
    assert gone.url in said[0]


def test_a_root_without_the_job_is_said_once(root: Root) -> None:
    """What it answers is said, and it is asked again: the application may be about to start."""
    said: list[str] = []
    told = Told(Wire(root.url + "/other"), placed("a"), "a", said.append)
    assert not told.poll()
    assert not told.poll()
    assert len(said) == 1
    assert "there is no such stream" in said[0]
