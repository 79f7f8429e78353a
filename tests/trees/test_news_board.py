"""The news of a job: every asker learns the truth, in whatever way it asks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.trees import news_board
from millstream.trees.messages import News, NewsQuestion
from millstream.trees.news_board import NewsBoard, NewsInquiry

NODES = ("a", "b", "c")


def accepted(pane: int, until: int, *nodes: str) -> dict[str, Any]:
    return {"accepted": {"pane": pane, "until": until, "nodes": list(nodes)}}


def board(*told: Any) -> NewsBoard:
    made = NewsBoard("root", "store")
    for number, record in enumerate(told):
        made.take(record, number)
    return made


def test_only_what_is_new_and_ones_own() -> None:
    """An answer has windows, and the panes of the nodes that were asked for, after a number."""
    made = board({"opened": 7}, accepted(1, 3, "a", "b"))
    first = made.answer(NewsQuestion(["a"]))
    assert first == News("root", 2, True, "store", [7], [], {"a": [(1, 3)]})
    made.take(accepted(3, 4, "b"), 2)
    asked = NewsQuestion(["a"], "root", 2)
    assert not made.has_news(asked)
    made.take({"closed": 7, "reducer": "1/0", "of": 1}, 3)
    assert made.has_news(asked)
    assert made.answer(asked) == News("root", 4, False, "store", [], [(7, 8)], {})


def test_a_window_is_closed_by_all_its_reducers() -> None:
    """A reducer that reports it twice counts once."""
    said = {"closed": 7, "reducer": "2/0", "of": 2}
    made = board(said, said)
    assert not made.is_closed(7)
    made.take({"closed": 7, "reducer": "2/1", "of": 2}, 2)
    assert made.is_closed(7)


def test_a_number_of_another_life_gets_all() -> None:
    """So does one that lies ahead, and one from before the board began."""
    made = NewsBoard("root", "store", 10)
    made.take({"opened": 7}, 10)
    for life, after in (("other", 11), ("root", 12), ("root", 9)):
        assert made.answer(NewsQuestion([], life, after)).whole
    assert not made.answer(NewsQuestion([], "root", 11)).whole


def test_what_is_not_understood_is_left_alone() -> None:
    """A newer root may tell more."""
    made = board("word", {"paused": 3}, {"accepted": "all"}, {"closed": 7}, None, {"opened": 4})
    assert made.answer(NewsQuestion()).opened == [4]
    assert not made.is_closed(7)
    assert made.next == 6


def test_a_root_with_another_store_voids_what_was_heard() -> None:
    """Its panes and windows have the same numbers and are others."""
    mine = NewsBoard("mine")
    mine.hear(
        board({"closed": 7, "reducer": "1/0"}, accepted(1, 2, "a")).answer(NewsQuestion(["a"]))
    )
    assert mine.is_closed(7)
    mine.hear(NewsBoard("root", "new store").answer(NewsQuestion(["a"])))
    assert not mine.is_closed(7)
    assert not mine.accepted("a", 1, 2)


TOLD = st.one_of(
    st.builds(lambda window: {"opened": window}, st.integers(0, 9)),
    st.builds(
        lambda window, reducer: {"closed": window, "reducer": f"2/{reducer}", "of": 2},
        st.integers(0, 9),
        st.integers(0, 1),
    ),
    st.builds(
        lambda pane, size, nodes: accepted(pane, pane + size, *nodes),
        st.integers(0, 30),
        st.integers(1, 3),
        st.sets(st.sampled_from(NODES), min_size=1),
    ),
)
STEPS = st.lists(
    st.one_of(
        TOLD,
        st.just("asks"),
        st.just("answer lost"),
        st.just("by another"),
        st.just("root restarts"),
        st.sets(st.sampled_from(NODES)),
    ),
    max_size=60,
)


@given(STEPS, st.booleans())
def test_however_one_asks_one_learns_what_is_so(steps: list[Any], small: bool) -> None:
    """Whatever answers are lost, however little a board remembers, and whoever is asked, the asker
    ends with the root's windows and the accepted panes of its nodes, and never learns anything
    false."""
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(news_board, "MOST_WINDOWS", 2)
            patch.setattr(news_board, "MOST_ACCEPTED", 2)
        root, log = NewsBoard("root", "store"), list[Any]()
        middle, from_middle = NewsBoard("middle"), NewsInquiry()
        mine, inquiry = NewsBoard("mine"), NewsInquiry()
        of, nodes = "root", set(NODES)

        def ask(*, lost: bool = False) -> None:
            if of == "middle":
                for _ in range(3):  # it may have to ask for nodes that are new to it first
                    said = from_middle.question("root", NODES, 0)
                    news = root.answer(said)
                    from_middle.heard(said, news)
                    middle.hear(news)
            asked = inquiry.question(of, nodes, 0)
            answer = {"root": root, "middle": middle}[of].answer(asked)
            if not lost:
                inquiry.heard(asked, answer)
                mine.hear(answer)

        for step in steps:
            if step == "asks" or step == "answer lost":
                ask(lost=step == "answer lost")
            elif step == "by another":
                of = "middle" if of == "root" else "root"
            elif step == "root restarts":
                root = board(*log)
            elif isinstance(step, dict):
                root.take(step, len(log))
                log.append(step)
            else:
                nodes = set(step)
        for _ in range(3):
            ask()
        for window in range(10):
            assert mine.is_closed(window) == root.is_closed(window)
        assert set(mine.answer(NewsQuestion()).opened) == set(root.answer(NewsQuestion()).opened)
        for node in NODES:
            for pane in range(34):
                known = mine.accepted(node, pane, pane + 1)
                so = root.accepted(node, pane, pane + 1)
                assert known == so if node in nodes else known <= so
