"""An agent as the parent of others: takes their messages, merges them, sends them on (iMR, 2.2).

DESIGN
------
Children post to it as they would to the root, and get the same answers, so a child need not know
which of the two it talks to. A parent keeps messages in memory only. Status 200 means that a
message will be sent on if this process lives; the child keeps it until the root reports that it was
accepted. The agent's own panes come the same way, as a post that needs no connection.

When the waiting messages reach the memory limit, further posts are refused with 503 until some have
been sent. So a root that takes nothing stops its parents, they stop their children, and those stop
reading.

One thread sends messages on: to this agent's own parent or, if there is none or it is gone, to the
root. Messages that are refused for good are dropped: their nodes will send them to the root
themselves, and get its refusal. The children, and the number of parents above, may change at any
time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from hashlib import sha256
from math import inf
from threading import Condition, Thread
from urllib.parse import quote

import msgspec

from millstream.agent.delivery.bodies import lines
from millstream.agent.delivery.delivery_attempt import DeliveryAttempt
from millstream.agent.delivery.outbox import GROUP_BYTES, Say
from millstream.agent.delivery.root_decisions import RootDecisions
from millstream.agent.delivery.ways import Ways
from millstream.agent.delivery.wire import Answer, ServerWire, answer_of, refusal_of, stream_path
from millstream.agent.tree.active_panes import ActivePanes, Heard, heard, patience_of
from millstream.errors import ClientError
from millstream.messages.streams import PostAnswer
from millstream.windows.placed import PlacedJob

GONE_AFTER = 10.0
"""Seconds after which a parent that takes nothing is bypassed."""
RETRY = 1.0
"""Seconds after which a child that was refused may try again."""
IDLE = 5.0
"""Seconds between two checks of the list of children, while nothing comes."""


class Parent:
    """The merging half of an agent, for one job. For the agent's own panes it is a `Way`."""

    def __init__(
        self,
        placed: PlacedJob,
        node: str,
        *,
        ways: Ways,
        decisions: RootDecisions,
        children: Callable[[], Collection[str]],
        depth: Callable[[], int],
        most_bytes: int,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`children` returns the current children, `depth` the number of parents above."""
        self._what = f"the merged panes of job {placed.name!r}"
        self._placed, self._node, self._told, self._ways = placed, node, decisions, ways
        self._nodes = frozenset(placed.nodes)
        self._most, self._say, self._clock = most_bytes, say, clock
        self._children, self._depth = children, depth
        self._path = stream_path(placed.panes)
        self._key = f"{quote(placed.name)[:80]}/{quote(node)[:80]}"
        self._active = ActivePanes(
            placed.job,
            {node, *children()},
            patience_of(placed.job, depth()),
            unwanted=self._unwanted,
        )
        self._root = DeliveryAttempt(ways.root, self._what, clock, say)
        self._up: DeliveryAttempt | None = None
        self._changed = Condition()
        self._outgoing: deque[bytes] = deque()
        self._outgoing_bytes = 0
        self._not_before = -inf
        """The earliest time of the next request."""
        self._stopping: float | None = None
        """The time by which it must have ended; None if it is not stopping."""
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="parent", daemon=True)
        self._last: DeliveryAttempt | None = None
        """The server that it last sent to."""
        self.name = f"node {node!r}"

    @property
    def held(self) -> int:
        """Bytes that wait here."""
        return self._active.bytes + self._outgoing_bytes

    @property
    def paused(self) -> str | None:
        """The reason why nothing is sent; None if messages are sent."""
        return None if self._last is None else self._last.paused

    @property
    def detour(self) -> bool:
        """True if merged panes go to the root although this agent has a parent."""
        return self._up is not None and self._last is self._root

    def children(self) -> dict[str, int | None]:
        """Returns for each child the pane after the last one that it has reported."""
        with self._changed:
            heard_of = self._active.heard_of()
        return {child: pane for child, pane in heard_of.items() if child != self._node}

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        """Raise the error that has ended the thread, if one has."""
        if self._failure is not None:
            raise self._failure

    def stop(self, seconds: float = 5.0) -> None:
        """Refuse further messages, send on those that are held if there is time, and end."""
        with self._changed:
            self._stopping = self._clock() + seconds
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds + 1)

    def alive(self) -> bool:
        return self._failure is None

    def post(self, path: str, body: bytes, key: str = "") -> Answer:
        """Take all messages of a request, or none of them. Answers as the root does."""
        messages: list[Heard] = []
        for number, line in enumerate(body.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                messages.append(self._checked(line))
            except ValueError as error:
                return refusal_of(422, f"nothing was accepted: line {number}: {error}")
        if not messages:
            return refusal_of(400, "the body is empty; send one message a line as NDJSON")
        with self._changed:
            if self._stopping is not None:
                return refusal_of(503, f"{self.name} is about to end", RETRY)
            if self.held + len(body) > self._most and self.held:
                return refusal_of(503, f"{self.name} holds {self.held} bytes", RETRY)
            for message in messages:
                self._active.put(message, self._clock())
            self._changed.notify_all()
        taken = PostAnswer(self._placed.panes, len(messages), [], 0, first=None, repeated=False)
        return answer_of(200, taken)

    def _checked(self, line: bytes) -> Heard:
        """Parses the message of a line. Raises ValueError if it does not belong here."""
        try:
            message = heard(line)
        except msgspec.DecodeError as error:
            raise ValueError(f"a message must have its panes and nodes: {error}") from None
        strangers = [node for node in message.nodes if node not in self._nodes]
        if strangers or not message.nodes:
            raise ValueError(
                f"it must be of nodes of job {self._placed.name!r}; got {strangers or 'none'}"
            )
        if message.pane > message.until:
            raise ValueError(f"its panes must not end at {message.until}, before {message.pane}")
        return message

    def _unwanted(self, pane: int) -> bool:
        return all(self._told.closed(window) for window in self._placed.job.span.windows_of(pane))

    def _run(self) -> None:
        try:
            while self._collect():
                self._send()
        except Exception as error:
            self._failure = error

    def _collect(self) -> bool:
        """Wait until something can be sent. False if it is stopping and has sent everything, or
        has no time left."""
        with self._changed:
            while True:
                now = self._clock()
                until = inf if self._stopping is None else self._stopping
                self._active.patience = patience_of(self._placed.job, self._depth())
                self._active.expect({self._node, *self._children()})
                due = self._active.due(now if self._stopping is None else inf)
                self._outgoing.extend(due)
                self._outgoing_bytes += sum(map(len, due))
                if now >= until or (self._stopping is not None and not self._outgoing):
                    return False
                if self._outgoing and self._not_before <= now:
                    return True
                wake = min(until, self._active.next_due(), now + IDLE)
                if self._outgoing:
                    wake = min(wake, self._not_before)
                self._changed.wait(max(0.001, wake - now))

    def _upwards(self) -> DeliveryAttempt:
        """Returns the server to send to now. It may have to be probed, which takes time, so the
        caller must hold no lock."""
        wire: ServerWire | None = self._ways.up(self._placed.name)
        if wire is None:
            self._up = None
            return self._root
        if self._up is None or self._up.way is not wire:
            self._up = DeliveryAttempt(wire, self._what, self._clock, self._say)
        if not self._up.gone(GONE_AFTER):
            return self._up
        if self._up.health.silent:
            self._ways.failed(wire)
        return self._root

    def _send(self) -> None:
        """Send on the oldest outgoing messages, as many as fit into one request."""
        trying = self._upwards()
        before, self._last = self._last, trying
        if before is not None and before is not trying and before.name != trying.name:
            self._say(f"merged panes go to {trying.name} now, not to {before.name}")
        self._not_before = trying.not_before
        if trying.not_before > self._clock():
            return
        sent, size = list[bytes](), 0
        for line in self._outgoing:
            if sent and size + len(line) > GROUP_BYTES:
                break
            sent.append(line)
            size += len(line)
        body = lines(sent)
        key = f"{self._key}/merged/{sha256(body).hexdigest()[:16]}"
        try:
            if not trying.post(self._path, body, key):
                self._not_before = -inf if trying is not self._root else trying.not_before
                return
        except ClientError as error:
            self._say(f"{error}; they are dropped here, and their nodes send them again")
        with self._changed:
            for line in sent:
                self._outgoing.popleft()
                self._outgoing_bytes -= len(line)
