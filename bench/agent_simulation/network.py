"""Requests between nodes that take time, get lost, or take effect without an answer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

import msgspec

from bench.agent_simulation.scenario import LinkModel
from bench.agent_simulation.traffic import Kind, Traffic
from bench.agent_simulation.world import Process, World
from millstream.agent.delivery.wire import CONNECT_TIMEOUT, TIMEOUT, Answer, ServerWire
from millstream.trees.messages import Hello, NewsQuestion

SCHEME = "http://"


class Endpoint(Protocol):
    """The receiver of a request: an agent that serves, or the root."""

    process: Process

    def take_post(self, body: bytes, key: str) -> Answer: ...

    def take_question(self, question: NewsQuestion) -> Answer: ...

    def take_hello(self, node: str, body: bytes) -> Answer: ...


class Network:
    """The simulated network: which endpoints can be reached, with delays and losses."""

    def __init__(self, world: World, model: LinkModel, random: Random, traffic: Traffic) -> None:
        self.world, self.model, self.random, self.traffic = world, model, random, traffic
        self.calm = False
        """True once no messages are lost any more."""
        self._endpoints: dict[str, Endpoint] = {}
        self._silent: set[str] = set()
        self._parted: set[tuple[str, str]] = set()

    def listen(self, name: str, endpoint: Endpoint) -> None:
        self._endpoints[name] = endpoint
        self._silent.discard(name)

    def gone(self, name: str, *, silent: bool) -> None:
        """Nobody listens there; `silent`: there is nobody to refuse a connection either."""
        self._endpoints.pop(name, None)
        if silent:
            self._silent.add(name)

    def part(self, one: str, other: str) -> None:
        self._parted |= {(one, other), (other, one)}

    def join(self, one: str, other: str) -> None:
        self._parted -= {(one, other), (other, one)}

    def request(
        self,
        source: str,
        target: str,
        kind: Kind,
        size: int,
        ask: Callable[[Endpoint], Answer],
        timeout: float,
    ) -> Answer:
        """Ask another one. OSError if no answer comes within the time."""
        world, model, random = self.world, self.model, self.random
        began = world.now
        self.traffic.sent(source, target, kind, size)
        if (source, target) in self._parted or target in self._silent:
            self._give_up(began, CONNECT_TIMEOUT)
        drawn = 1.0 if self.calm else random.random()
        if drawn < model.lost:
            if drawn < model.lost / 2:
                self._give_up(began, timeout)
            world.sleep(self._delay())
            raise ConnectionResetError("the connection broke")
        answered = drawn >= model.lost + model.unanswered
        there = self._delay()
        if there > timeout:  # it arrives when nobody waits for it any more
            self._deliver_later(target, there, ask)
            self._give_up(began, timeout)
        world.sleep(there)
        endpoint = self._endpoints.get(target)
        if endpoint is None:
            if target in self._silent:
                self._give_up(began, timeout)
            raise ConnectionRefusedError("nobody listens there")
        answer = ask(endpoint)
        if not endpoint.process.alive:
            raise ConnectionResetError("the connection broke")
        if not answered or (source, target) in self._parted:
            self._give_up(began, timeout)
        back = self._delay()
        if world.now + back - began > timeout:
            self._give_up(began, timeout)
        world.sleep(back)
        self.traffic.answered(source, target, kind, len(answer.body))
        return answer

    def _deliver_later(
        self, target: str, seconds: float, ask: Callable[[Endpoint], Answer]
    ) -> None:
        def deliver() -> None:
            self.world.sleep(seconds)
            endpoint = self._endpoints.get(target)
            if endpoint is not None:
                ask(endpoint)

        self.world.spawn(Process("late"), deliver)

    def _give_up(self, began: float, timeout: float) -> None:
        self.world.sleep(max(0.0, began + timeout - self.world.now))
        raise TimeoutError("timed out")

    def _delay(self) -> float:
        model, random = self.model, self.random
        if not self.calm and model.slow and random.random() < model.slow:
            return random.uniform(1.0, model.slowest)
        return random.expovariate(1 / model.delay)


class VirtualWire(ServerWire):
    """A wire of a node over a `Network`."""

    def __init__(
        self, network: Network, source: str, url: str, name: str, timeout: float = TIMEOUT
    ) -> None:
        self._network, self._source = network, source
        self.url, self.name, self._timeout = url, name, timeout
        self._target = url.removeprefix(SCHEME)
        self._reused = False

    def post(self, path: str, body: bytes, key: str) -> Answer:
        return self._ask("panes", len(body), lambda one: one.take_post(body, key))

    def news(self, path: str, question: NewsQuestion) -> Answer:
        size = len(msgspec.json.encode(question))
        return self._ask("news", size, lambda one: one.take_question(question), question.wait)

    def hello(self, hello: Hello) -> Answer:
        body, node = msgspec.json.encode(hello), hello.member.node
        return self._ask("hello", len(body), lambda one: one.take_hello(node, body))

    def alive(self) -> bool:
        try:
            self._network.request(
                self._source, self._target, "alive", 0, lambda _: Answer(200, b""), CONNECT_TIMEOUT
            )
        except OSError:
            return False
        return True

    def hang_up(self, thread: int | None) -> None:
        """Strands are ended by the world."""

    def _ask(
        self, kind: Kind, size: int, ask: Callable[[Endpoint], Answer], wait: float = 0.0
    ) -> Answer:
        """As a wire does: a connection that was kept open and broke is made again, once."""
        given = self._source, self._target, kind, size, ask, self._timeout + wait
        reused, self._reused = self._reused, False
        try:
            answer = self._network.request(*given)
        except ConnectionError:
            if not reused:
                raise
            answer = self._network.request(*given)
        self._reused = True
        return answer
