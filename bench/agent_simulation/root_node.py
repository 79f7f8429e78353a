"""The root: a server that is asked, and the application, which takes what came batch by batch.

The server's memory, where agents sit and what it knows of the news, is gone when it restarts. What
was posted is on disk, and so is all that the application has said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.agent_simulation.made_up_log import SECOND
from bench.agent_simulation.network import Network
from bench.agent_simulation.scenario import EPOCH
from bench.agent_simulation.virtual_threads import VirtualCondition
from bench.agent_simulation.world import Process, World
from millstream import App
from millstream.agent.delivery.wire import Answer, answer_of
from millstream.model.event import Event
from millstream.reference import Reference
from millstream.server.jobs.job_news import TAIL
from millstream.trees.messages import LONGEST_WAIT, Hello, HelloAnswer, NewsQuestion, Orders
from millstream.trees.news_board import NewsBoard
from millstream.trees.tree_placement import EVERY, TreePlacement
from millstream.windows.placed import PlacedJob

STORE = "store"
AWAY = answer_of(503, {"error": "the application takes nothing now"}, 1.0)

_hello = msgspec.json.Decoder(Hello)


class RootNode:
    """The one root."""

    def __init__(
        self, app: App, placed: PlacedJob, network: Network, *, fan_out: int, batch: float
    ) -> None:
        self._placed, self._network, self._fan_out, self._batch = placed, network, fan_out, batch
        self._world: World = network.world
        self.application = Reference(app.workflow(), self.wall())
        self._posted: list[Event] = []
        self._keys: set[str] = set()
        """Idempotency keys of posted messages."""
        self._newest = 0
        """The time of the last event."""
        self.closed_at: dict[int, float] = {}
        """By window: when the application closed it, in the world's time."""
        self.opened: set[int] = set()
        """Windows that the application has opened."""
        self._summaries = self._heard = 0
        self.batches = 0
        self.messages: Counter[int] = Counter()
        """By batch: messages that it took in."""
        self.serve()
        self._world.at(batch, self._run_batch)

    def wall(self) -> int:
        """The time of day in microseconds."""
        return int((EPOCH + self._world.now) * SECOND)

    def serve(self) -> None:
        """Start the server, with an empty memory."""
        self.process = Process("root")
        self.placement = TreePlacement(self.wall(), fan_out=self._fan_out)
        told = self._told()
        begin = max(0, len(told) - TAIL)
        self._board = NewsBoard(STORE, STORE, begin)
        self._news = VirtualCondition()
        self._read_told()
        self._network.listen("root", self)

    def stop(self) -> None:
        """End the server."""
        self._network.gone("root", silent=False)
        self.process.alive = False
        self._news.notify_all()

    def summaries(self) -> list[Event]:
        """Returns the summaries of closed windows, in order."""
        return self.application.streams[f"{self._placed.name}.windows"]

    def answers(self) -> list[Event]:
        """Returns the answers of windows for their keys, in order."""
        return self.application.streams[self._placed.name]

    def tables(self) -> Iterator[dict[str, bytes]]:
        """The tables of the reducers."""
        for (update, _), slate in self.application.slates.items():
            if update == self._placed.root:
                yield slate.entries

    # What agents ask

    def take_post(self, body: bytes, key: str) -> Answer:
        lines = [line for line in body.split(b"\n") if line]
        repeated = key in self._keys
        if not repeated:
            self._keys.add(key)
            for line in lines:
                self._newest = max(self._newest, self.wall())
                event = Event(self._placed.panes, self._newest, "", msgspec.json.decode(line))
                self._posted.append(event)
        return answer_of(200, {"accepted": len(lines), "repeated": repeated})

    def take_question(self, question: NewsQuestion) -> Answer:
        until = self._world.now + min(question.wait, LONGEST_WAIT)
        board, process = self._board, self.process
        while process.alive and not board.has_news(question):
            left = until - self._world.now
            if left <= 0:
                break
            self._news.wait(left)
        return answer_of(200, board.answer(question))

    def take_hello(self, node: str, body: bytes) -> Answer:
        hello = _hello.decode(body)
        seats = self.placement.hello(hello, self._world.now)
        orders = {name: Orders(seat) for name, seat in seats.items()}
        return answer_of(200, HelloAnswer(EVERY, orders))

    # The application

    def _run_batch(self) -> None:
        posted, self._posted = self._posted, []
        self.batches += 1
        self.messages[self.batches] = len(posted)
        self.application.feed(posted)
        self.application.clock = max(self.application.clock, self.wall())
        self.application.drain()
        self.application.tick(self.wall())
        self._note_windows()
        self._read_told()
        self._world.at(self._world.now + self._batch, self._run_batch)

    def _note_windows(self) -> None:
        span, summaries, told = self._placed.job.span, self.summaries(), self._told()
        for event in told[self._heard :]:
            if "opened" in event.value:
                self.opened.add(event.value["opened"])
        self._heard = len(told)
        for event in summaries[self._summaries :]:
            self.closed_at.setdefault(event.value["from"] // span.slide, self._world.now)
        self._summaries = len(summaries)

    def _told(self) -> list[Event]:
        return self.application.streams[self._placed.told]

    def _read_told(self) -> None:
        """Lets the server read the application's messages to agents, and wakes those that wait."""
        told: list[Any] = self._told()
        board = self._board
        if board.next < len(told):
            for number in range(board.next, len(told)):
                board.take(told[number].value, number)
            self._news.notify_all()
