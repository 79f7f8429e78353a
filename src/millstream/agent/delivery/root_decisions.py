"""Follows the news of a job: panes that the root accepted, windows that it opened and closed.

DESIGN
------
A thread asks for the news of the job (iMR, 3.3) and adds each answer to a `NewsBoard`, which serves
this agent and, if it is a parent, the nodes below it. It asks its parent if that answers, otherwise
the root. A question waits there for news, and about half a second passes between two questions. So
there are about two a second at most, however many nodes there are.

It asks for the accepted panes of this node if the node sends through a parent, and of all nodes
that others have asked for here. So a parent learns what the nodes below it need.

Nothing is kept on disk: an agent that starts gets everything that is known. The time at which a
window was opened is by the clock of this process, which only goes forward.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import uniform
from threading import Condition, Event, Thread
from uuid import uuid4

import msgspec

from millstream.agent.delivery.outbox import Say
from millstream.agent.delivery.ways import Ways
from millstream.agent.delivery.wire import SILENT, Answer, ServerWire, job_path
from millstream.retry_pause import LONGEST_HEEDED
from millstream.trees.messages import LONGEST_WAIT, News, NewsQuestion
from millstream.trees.news_board import MOST_OPEN, NewsBoard, NewsInquiry
from millstream.windows.placed import PlacedJob

EVERY = 0.5
"""Seconds between two questions."""
AFTER_SILENCE = 2.0
"""Seconds between a question that got no news and the next."""
WAIT = 10
"""Seconds that a question may wait for news."""
PARENT_WAIT = 2
"""Seconds that a parent's question may wait: a new child may need another question meanwhile."""
AVOIDED = 5.0
"""Seconds for which a parent that did not answer is not asked for news."""
REFUSED = 60.0
"""Seconds for which a parent that refused to answer is not asked for news."""
ASKED_FOR = 120.0
"""Seconds for which this agent asks for the panes of a node after others have asked it for them."""

_news = msgspec.json.Decoder(News)


class RootDecisions:
    """The root's decisions, as far as they are known here. Threads may share it."""

    def __init__(
        self,
        ways: Ways,
        placed: PlacedJob,
        node: str,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ways, self._node, self._say, self._clock = ways, node, say, clock
        self._job, self._path = placed.name, job_path(placed.name, "news")
        self._changed = Condition()
        self._board = NewsBoard(uuid4().hex)
        self._inquiry = NewsInquiry()
        self._opened: dict[int, float] = {}
        self._asked_for: dict[str, float] = {}
        """Nodes that others have asked for here, and when."""
        self._avoid: tuple[str, float] = "", 0.0
        """The URL of a parent that gave no news, and until when it is not asked."""
        self._quiet = ""
        """The last message about why there is no news."""
        self._heeded = 0.0
        """Seconds that the last server asked us to wait."""
        self._stopped = Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="told", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread, and wake those who wait for an answer here."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            for wire in (self._ways.root, self._ways.up(self._job)):
                if wire is not None:
                    wire.hang_up(self._thread.ident)
            self._thread.join(seconds)

    def check(self) -> None:
        """Raise the error that has ended the thread, if one has."""
        if self._failure is not None:
            raise self._failure

    def closed(self, window: int) -> bool:
        """True if the window is closed: no more panes of it are wanted."""
        with self._changed:
            return self._board.is_closed(window)

    def opened(self, window: int) -> float | None:
        """Returns when we learnt that the window was opened, by `clock`; None if that is not known
        or was long ago."""
        with self._changed:
            return self._opened.get(window)

    def accepted(self, pane: int, until: int) -> bool:
        """True if the root has accepted all of these panes of this node."""
        with self._changed:
            return self._board.accepted(self._node, pane, until)

    def answer(self, question: NewsQuestion) -> News:
        """Answers a question from below with what this agent knows; waits for news if asked to."""
        until = self._clock() + min(question.wait, LONGEST_WAIT)
        with self._changed:
            for node in question.nodes:
                self._asked_for[node] = self._clock()
            while not self._board.has_news(question) and not self._stopped.is_set():
                left = until - self._clock()
                if left <= 0:
                    break
                self._changed.wait(left)
            return self._board.answer(question)

    def hear(self, news: News) -> None:
        """Add the news of another board."""
        with self._changed:
            self._board.hear(news)
            for window in news.opened:
                if not self._board.is_closed(window):
                    self._opened.setdefault(window, self._clock())
            for window, until in news.closed:
                for closed in [known for known in self._opened if window <= known < until]:
                    del self._opened[closed]
            while len(self._opened) > MOST_OPEN:
                del self._opened[next(iter(self._opened))]
            if news:
                self._changed.notify_all()

    def poll(self, wait: float = 0.0) -> bool:
        """Ask once. True if there was an answer."""
        wire, self._heeded = self._asked(), 0.0
        with self._changed:
            question = self._inquiry.question(wire.url, self._nodes(), wait)
        try:
            answer = wire.news(self._path, question)
            news = _news.decode(answer.body) if answer.status == 200 else None
        except (*SILENT, msgspec.DecodeError) as error:
            if not self._stopped.is_set():
                self._unheard(wire, f"no news from {wire.name}: {error}", AVOIDED)
                self._ways.failed(wire)
            return False
        if news is None:
            later = answer.verdict() == "later"
            self._heeded = min(answer.retry_after or 0.0, LONGEST_HEEDED)
            self._unheard(wire, _refused(answer, wire), AVOIDED if later else REFUSED)
            return False
        with self._changed:
            self._inquiry.heard(question, news)
        self.hear(news)
        self._quiet = ""
        return True

    def _asked(self) -> ServerWire:
        """Returns the server to ask now."""
        up = self._ways.up(self._job)
        avoided, until = self._avoid
        if up is None or (up.url == avoided and self._clock() < until):
            return self._ways.root
        return up

    def _nodes(self) -> set[str]:
        """Returns the nodes whose accepted panes to ask for."""
        long_ago = self._clock() - ASKED_FOR
        for node in [node for node, at in self._asked_for.items() if at < long_ago]:
            del self._asked_for[node]
        own = {self._node} if self._ways.by_parent(self._job) else set()
        nodes = {*own, *self._asked_for}
        self._board.forget_nodes(nodes)
        return nodes

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                answered = self.poll(PARENT_WAIT if self._asked_for else WAIT)
                pause = EVERY if answered else max(AFTER_SILENCE, self._heeded)
                pause *= uniform(0.8, 1.2)
                self._stopped.wait(pause)
        except Exception as error:
            self._failure = error

    def _unheard(self, wire: ServerWire, sentence: str, seconds: float) -> None:
        """Report that no news came, and bypass a parent for a while."""
        if wire is not self._ways.root:
            self._avoid = wire.url, self._clock() + seconds
        if sentence != self._quiet:
            self._quiet = sentence
            self._say(sentence)


def _refused(answer: Answer, wire: ServerWire) -> str:
    return f"{wire.name} gives no news of its windows: {answer.sentence()}"
