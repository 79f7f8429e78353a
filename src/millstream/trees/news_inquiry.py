"""Asks for the news of a job: decides the next question to the root or to a parent.

Numbers belong to the board that gave them, so the first question to another board has none, and
asks for everything. Nodes that were not in a question before get one of their own, without a
number. Its answer has all their panes that were accepted earlier, under another parent perhaps.
"""

from __future__ import annotations

from collections.abc import Collection

from millstream.trees.messages import News, NewsQuestion


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
