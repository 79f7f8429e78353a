"""Whoever asks for the news of a job: what to ask next, of the root or of a parent.

Numbers belong to whoever gave them, so with another one asked all is asked for anew. A node whose
accepted panes were not asked for before is asked for by itself once, without a number: what was
accepted of it earlier is told then (it may have had another parent).
"""

from __future__ import annotations

from collections.abc import Collection

from millstream.trees.messages import News, NewsQuestion


class NewsInquiry:
    """The questions of one asker about one job."""

    def __init__(self) -> None:
        self._of = ""
        self._life = ""
        self._after: int | None = None
        self._nodes: frozenset[str] = frozenset()
        """Those that were asked for up to `_after`."""

    def question(self, of: str, nodes: Collection[str], wait: float) -> NewsQuestion:
        """The next question to whoever is called `of`, on behalf of these nodes."""
        if of != self._of:
            self._of, self._life, self._after, self._nodes = of, "", None, frozenset()
        new = [node for node in nodes if node not in self._nodes]
        if new or self._after is None:
            asked = new if self._after is not None else sorted(nodes)
            return NewsQuestion(sorted(asked))
        return NewsQuestion(sorted(nodes), self._life, self._after, wait)

    def heard(self, question: NewsQuestion, news: News) -> None:
        """An answer came."""
        if question.after is None:
            kept = self._nodes if news.life == self._life else frozenset[str]()
            self._nodes = kept | frozenset(question.nodes)
            if self._after is not None and news.life == self._life:
                return  # only of nodes that are new: others are asked for from where they were
        else:
            self._nodes = frozenset(question.nodes)
        self._life, self._after = news.life, news.next
