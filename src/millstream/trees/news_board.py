"""The news of one job, and the questions for it.

The cost of an answer depends on what is new to the agent that asks.

DESIGN
------
A board is fed by the records of `NAME.told` at the root, or by the answers of another board at an
agent. It numbers what it learns. Within bounds it keeps two things: the state (the windows that are
open or closed, the accepted panes of each node) and the last changes of each. If the kept changes
reach back to the question's number, the answer has the changes since then, otherwise the state. So
what an agent learns does not depend on how often it asks, and a lost answer loses no news (iMR,
3.3).

A board may forget that a pane was accepted: its node then sends it again, and the root ignores it.
A board never says that a pane was accepted when it was not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from millstream.trees.messages import News, NewsQuestion, ToldRecord
from millstream.trees.ranges import Ranges

MOST_OPEN = 10_000
"""A board keeps at most this many open windows, and at most this many windows that only some
reducers have closed. The earliest are forgotten."""
MOST_WINDOWS = 10_000
"""A board keeps at least this many of the last changes of windows."""
MOST_ACCEPTED = 100
"""A board keeps at least this many of the last changes of a node's accepted panes."""
MOST_RANGES = 1_000
"""A board keeps at most this many ranges of a node's accepted panes."""


class _NumberedChanges:
    """The last changes of one kind, numbered."""

    __slots__ = ("_changes", "_most", "_numbers", "since")

    def __init__(self, since: int, most: int) -> None:
        self.since, self._most = since, most
        """All changes from number `since` on are kept."""
        self._numbers: list[int] = []
        self._changes: list[tuple[int, int]] = []

    def add(self, number: int, change: tuple[int, int]) -> None:
        self._numbers.append(number)
        self._changes.append(change)
        if len(self._numbers) >= 2 * self._most:
            self.since = self._numbers[self._most - 1] + 1
            del self._numbers[: self._most], self._changes[: self._most]

    def after(self, number: int) -> list[tuple[int, int]]:
        return self._changes[bisect_left(self._numbers, number) :]

    def any_after(self, number: int) -> bool:
        return bool(self._numbers) and self._numbers[-1] >= number


class _NodePanes:
    """The accepted panes of a node."""

    __slots__ = ("changes", "panes")

    def __init__(self, since: int) -> None:
        self.panes = Ranges(MOST_RANGES, forgets=True)
        self.changes = _NumberedChanges(since, MOST_ACCEPTED)


class NewsBoard:
    """The known windows and accepted panes of a job. Not thread-safe."""

    def __init__(self, life: str, origin: str = "", number: int = 0) -> None:
        """`number` is the number of the first news to come."""
        self.life, self.origin = life, origin
        self._began = self.next = number
        self._nodes: dict[str, _NodePanes] = {}
        self._open: dict[int, None] = {}
        self._closed = Ranges()
        self._closing: dict[int, set[str]] = {}
        """Windows that only some reducers have closed, and those reducers."""
        self._opens = _NumberedChanges(number, MOST_WINDOWS)
        self._closes = _NumberedChanges(number, MOST_WINDOWS)

    def take(self, record: object, number: int) -> None:
        """Learn from a record of `NAME.told` and its number. A record that is not understood comes
        from a newer version, and is skipped."""
        self.next = number
        news = _told(record)
        if news is not None and news.accepted is not None:
            for node in news.accepted.nodes:
                self.accept(node, news.accepted.pane, news.accepted.until)
        elif news is not None and news.closed is not None and news.reducer:
            closing = self._closing.setdefault(news.closed, set())
            closing.add(news.reducer)
            if len(closing) >= news.reducers:
                self.close(news.closed, news.closed + 1)
        elif news is not None and news.opened is not None:
            self.open(news.opened)
        self.next = number + 1

    def hear(self, news: News) -> None:
        """Learn from the answer of another board. If the root has another store now, everything
        that was known before is forgotten."""
        if self.origin and news.origin and news.origin != self.origin:
            self._forget()
        self.origin = news.origin or self.origin
        for window in news.opened:
            self.open(window)
        for window, until in news.closed:
            if not self._closed.covers(window, until):
                self.close(window, until)
        for node, panes in news.accepted.items():
            for pane, until in panes:
                if not self.accepted(node, pane, until):
                    self.accept(node, pane, until)
        self.next += 1

    def open(self, window: int) -> None:
        if window not in self._open and window not in self._closed:
            self._open[window] = None
            self._opens.add(self.next, (window, window + 1))
            _keep(self._open)

    def close(self, window: int, until: int) -> None:
        """All reducers have closed the windows from `window` up to `until`."""
        if until - window <= len(self._open) + len(self._closing):
            closed: Iterable[int] = range(window, until)
        else:  # a long range, as in an answer with all closed windows: look at the known ones only
            closed = [known for known in (*self._open, *self._closing) if window <= known < until]
        for number in closed:
            self._open.pop(number, None)
            self._closing.pop(number, None)
        self._closed.add(window, until)
        self._closes.add(self.next, (window, until))
        _keep(self._closing)

    def accept(self, node: str, pane: int, until: int) -> None:
        known = self._nodes.get(node)
        if known is None:
            known = self._nodes[node] = _NodePanes(self._began)
        known.panes.add(pane, until)
        known.changes.add(self.next, (pane, until))

    def is_closed(self, window: int) -> bool:
        return window in self._closed

    def accepted(self, node: str, pane: int, until: int) -> bool:
        """True if the root has accepted all of these panes of a node."""
        known = self._nodes.get(node)
        return pane >= until or (known is not None and known.panes.covers(pane, until))

    def forget_nodes(self, kept: set[str]) -> None:
        """Keep the accepted panes of these nodes only."""
        for node in [node for node in self._nodes if node not in kept]:
            del self._nodes[node]

    def has_news(self, question: NewsQuestion) -> bool:
        """True if an answer would have any news."""
        after = self._after(question)
        if after is None:
            return True
        if self._opens.any_after(after) or self._closes.any_after(after):
            return True
        known = (self._nodes.get(node) for node in question.nodes)
        return any(node is not None and node.changes.any_after(after) for node in known)

    def answer(self, question: NewsQuestion) -> News:
        """Returns the news since `question.after`, or everything if the changes do not reach back
        that far."""
        after = self._after(question)
        windows = after is not None and after >= max(self._opens.since, self._closes.since)
        accepted: dict[str, list[tuple[int, int]]] = {}
        for node in question.nodes:
            known = self._nodes.get(node)
            if known is None:
                continue
            if after is not None and after >= known.changes.since:
                panes = known.changes.after(after)
            else:
                panes = _ranges(known.panes)
            if panes:
                accepted[node] = panes
        if after is not None and windows:
            opened = [window for window, _ in self._opens.after(after) if window in self._open]
            closed = self._closes.after(after)
        else:
            opened, closed = list(self._open), _ranges(self._closed)
        whole = after is None or not windows
        return News(self.life, self.next, whole, self.origin, opened, closed, accepted)

    def _after(self, question: NewsQuestion) -> int | None:
        """Returns the number that the question continues from; None if this board did not give
        it."""
        after = question.after
        if after is None or question.life != self.life or not self._began <= after <= self.next:
            return None
        return after

    def _forget(self) -> None:
        self._nodes.clear()
        self._open.clear()
        self._closing.clear()
        self._closed = Ranges()
        self._began = self.next
        self._opens = _NumberedChanges(self.next, MOST_WINDOWS)
        self._closes = _NumberedChanges(self.next, MOST_WINDOWS)


def _told(record: object) -> ToldRecord | None:
    try:
        return msgspec.convert(record, ToldRecord)
    except msgspec.ValidationError:
        return None


def _keep(windows: dict[int, Any]) -> None:
    while len(windows) > MOST_OPEN:
        del windows[next(iter(windows))]


def _ranges(known: Ranges) -> list[tuple[int, int]]:
    return [(int(first), int(until)) for first, until in known]


class NewsInquiry:
    """The questions of one agent about one job."""

    def __init__(self) -> None:
        self._of = ""
        self._life = ""
        self._after: int | None = None
        self._nodes: frozenset[str] = frozenset()
        """The nodes whose panes were asked for up to `_after`."""

    def question(self, board: str, nodes: Collection[str], wait: float) -> NewsQuestion:
        """Returns the next question to the board called `board`, on behalf of these nodes."""
        if board != self._of:
            self._of, self._life, self._after, self._nodes = board, "", None, frozenset()
        new = [node for node in nodes if node not in self._nodes]
        if new or self._after is None:
            return NewsQuestion(sorted(new if self._after is not None else nodes))
        return NewsQuestion(sorted(nodes), self._life, self._after, wait)

    def heard(self, question: NewsQuestion, news: News) -> None:
        """Take the answer to a question."""
        if question.after is None:
            kept = self._nodes if news.life == self._life else frozenset[str]()
            self._nodes = kept | frozenset(question.nodes)
            if self._after is not None and news.life == self._life:
                return  # the question was only for new nodes: the others keep their number
        else:
            self._nodes = frozenset(question.nodes)
        self._life, self._after = news.life, news.next
