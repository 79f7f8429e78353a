"""An agent as a member of the tree that the root builds: says hello, and follows the answers.

A thin shell around `TreeMember`, with a thread and connections. It is the `Ways` of the agent: the
parent may change at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from random import random
from threading import Condition, Thread

import msgspec

from millstream.agent.delivery.outbox import Say
from millstream.agent.delivery.wire import SILENT, Answer, ServerWire, answer_of, refusal_of
from millstream.agent.job_host import JobHost, JobHosting
from millstream.trees.messages import Hello, HelloAnswer, JobTicket, Seat
from millstream.trees.tree_member import Greeting, TreeMember

ANSWER_WITHIN = 5.0
"""Seconds that a parent may take to answer."""
UNPLACED = HelloAnswer(every=60.0)
"""The answer that is assumed of a root that does not place agents."""

_hello = msgspec.json.Decoder(Hello)
_answer = msgspec.json.Decoder(HelloAnswer)
Connect = Callable[[str, str], ServerWire]
"""Makes a connection, given a URL and a name for messages."""


class Membership:
    """The agent's place in the tree. One per process; threads share it."""

    def __init__(
        self,
        member: TreeMember,
        root: ServerWire,
        connect: Connect,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._member, self._root, self._connect = member, root, connect
        self._greeted = connect(root.url, root.name)
        """A connection to the root for hellos only, with a short timeout."""
        self._say, self._clock = say, clock
        self._hosting: JobHosting | None = None
        self._changed = Condition()
        self._wire: tuple[str, ServerWire] | None = None
        self._said = ""
        self._stopped = False
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="membership", daemon=True)

    @property
    def root(self) -> ServerWire:
        return self._root

    def up(self, job: str) -> ServerWire | None:
        with self._changed:
            seat = self._member.way()
            merged = job in self._member.merges
            return self._wire_of(seat) if seat is not None and merged else None

    def by_parent(self, job: str) -> bool:
        return bool(self._member.url) or self.up(job) is not None

    def failed(self, wire: ServerWire) -> None:
        with self._changed:
            seat = self._member.way()
            if seat is not None and wire.url == self._wire_of(seat).url:
                self._member.parent_failed(seat, self._clock())
                self._changed.notify_all()

    def lost(self, wire: ServerWire) -> bool:
        with self._changed:
            return wire.url in {url.rstrip("/") for url in self._member.lost}

    @property
    def hosts(self) -> bool:
        """True if it runs the jobs that the root wants; otherwise it has its own jobs."""
        return self._hosting is not None

    def host(self, host: JobHost) -> None:
        """Run the jobs that the root wants."""
        self._member.hosts = True
        self._hosting = JobHosting(host, self._root, self._say, self._clock)

    def children(self, job: str) -> set[str]:
        """Returns the children that are alive and run a job."""
        with self._changed:
            return self._member.children(job, self._clock())

    def depth(self) -> int:
        """Returns the number of parents above."""
        return len(self._member.path)

    def runs(self, *tickets: JobTicket) -> None:
        """Set the jobs that this agent runs; the next hello reports them."""
        with self._changed:
            self._member.jobs = sorted(tickets)

    def greeted(self, node: str, body: bytes) -> Answer:
        """Answer the hello of a child."""
        try:
            hello = _hello.decode(body)
        except msgspec.DecodeError as error:
            return refusal_of(400, f"the body must be an agent's hello as JSON: {error}")
        if hello.member.node != node:
            return refusal_of(400, f"the hello must be of node {node[:100]!r}")
        with self._changed:
            return answer_of(200, self._member.heard(hello, self._clock()))

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        """Raise the error that has ended the thread, if one has."""
        if self._failure is not None:
            raise self._failure

    def stop(self, seconds: float = 1.0) -> None:
        """End, and tell the parent and the root, so that the children get other parents at once."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if not self._thread.is_alive():
            return
        self._greeted.hang_up(self._thread.ident)
        self._thread.join(seconds)
        greeting = self._member.hello(self._clock(), leaving=True)
        above = [] if greeting.by_root else [self._wire_of(greeting.seat)]
        for wire in (*above, self._greeted):
            with suppress(*SILENT):
                ServerWire.like(wire, seconds).hello(greeting.hello)

    def _run(self) -> None:
        try:
            while (greeting := self._next()) is not None:
                self._greet(greeting)
        except Exception as error:
            self._failure = error

    def _next(self) -> Greeting | None:
        """Wait until it is time to say hello; None if it was stopped."""
        with self._changed:
            while not self._stopped:
                wait = self._member.due - self._clock()
                if wait <= 0:
                    return self._member.hello(self._clock())
                self._changed.wait(wait)
            return None

    def _greet(self, greeting: Greeting) -> None:
        wire = self._greeted if greeting.by_root else self._wire_of(greeting.seat)
        reply, why = _reply_to(greeting, wire)
        with self._changed:
            if self._stopped:
                return
            before, now = self._member.way(), self._clock()
            if reply is not None:
                self._member.answered(greeting, reply, now)
            else:
                self._member.unanswered(greeting, now, random())
            after, wanted = self._member.way(), self._member.wanted
        if reply is not None:
            self._say_once("")
        elif greeting.by_root:
            self._say_once(f"{wire.name} does not answer a hello: {why}")
        else:
            self._say(f"{wire.name} does not answer: {why}; messages go to the root now")
        if after is not None and (before is None or after.parent != before.parent):
            self._say(f"node {after.parent!r} at {after.url} is the parent now")
        elif after is None and before is not None and reply is not None:
            self._say("there is no parent any more: messages go to the root")
        if wanted is None and greeting.by_root and reply not in (None, UNPLACED):
            wanted = []  # the root says so by ordering nothing
        if self._hosting is not None and wanted is not None:
            self._hosting.follow(wanted)
            self.runs(*self._hosting.running.values())

    def _wire_of(self, seat: Seat) -> ServerWire:
        with self._changed:
            if self._wire is None or self._wire[0] != seat.url:
                self._wire = seat.url, self._connect(seat.url, f"parent {seat.parent}")
            return self._wire[1]

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            if sentence:
                self._say(sentence)


def _reply_to(greeting: Greeting, wire: ServerWire) -> tuple[HelloAnswer | None, str]:
    """Says hello, and returns the answer; or None, and why there is none."""
    try:
        answer = wire.hello(greeting.hello)
        if answer.status == 200:
            return _answer.decode(answer.body), ""
    except (*SILENT, msgspec.DecodeError) as error:
        return None, str(error) or type(error).__name__
    if greeting.by_root and answer.status in (404, 405):
        return UNPLACED, ""
    why = answer.sentence()
    if answer.status == 401:
        why += "; the agent takes it from --token-file or MILLSTREAM_TOKEN"
    return None, why
