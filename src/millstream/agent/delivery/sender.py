"""Sends the groups of the outbox to the root, directly or through a parent (iMR, 2.2 and 4.3).

Each group is one request. Groups are sent in order. The idempotency key of a request is derived
from its content: a group that is sent again, after a crash or a broken connection, has the same
bytes and the same key. `PaneDelivery` decides what goes where. A parent that was gone is used again
when it answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import Event, Thread
from urllib.parse import quote

from millstream.agent.delivery.bodies import lines
from millstream.agent.delivery.delivery_attempt import DeliveryAttempt
from millstream.agent.delivery.delivery_plan import PaneDelivery, Panes, Remove, Rest
from millstream.agent.delivery.outbox import Group, Outbox, OutboxEntry, Say
from millstream.agent.delivery.root_decisions import RootDecisions
from millstream.agent.delivery.wire import Way, stream_path
from millstream.agent.tree.active_panes import patience_of
from millstream.errors import ClientError
from millstream.windows.placed import PlacedJob

ACCEPTED_WITHIN = 10.0
"""The least number of seconds that a pane sent to a parent may take to be accepted."""
LONGEST_KEY = 200


class Sender:
    """A thread that empties the outbox."""

    def __init__(
        self,
        outbox: Outbox,
        placed: PlacedJob,
        *,
        root: Way,
        parent: Callable[[], Way | None],
        decisions: RootDecisions,
        say: Say,
        failed: Callable[[Way], None] = lambda way: None,
        lost: Callable[[Way], bool] = lambda way: False,
        levels: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`parent` returns the current parent. `failed` is called with a parent that does not
        answer. `lost` tells whether a former parent was given up because it did not answer.
        `levels` is the number of parents that may be above; each waits half as long as the one
        above it."""
        self._what = f"the panes of job {placed.name!r}"
        self._outbox, self._told, self._clock, self._say = outbox, decisions, clock, say
        self._path = stream_path(placed.panes)
        self._root = DeliveryAttempt(root, self._what, clock, say)
        self._current, self._failed, self._lost = parent, failed, lost
        self._parent: DeliveryAttempt | None = None
        waits = sum(patience_of(placed.job, depth) for depth in range(levels))
        self._patience = max(ACCEPTED_WITHIN, waits + 5)
        self._delivery = PaneDelivery(self._patience)
        self.detour = False
        """True if panes go to the root although there is a parent."""
        self._last = self._root
        self._said = ""
        """The last message about a parent's refusal."""
        self._stopped = Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="sender", daemon=True)

    @property
    def paused(self) -> str | None:
        """The reason why nothing is sent; None if panes are sent."""
        return self._last.paused

    @property
    def running(self) -> bool:
        """True if its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        """Raise the error that has ended the thread, if one has: a pane was refused for good."""
        if self._failure is not None:
            raise self._failure

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread. Groups that were not sent stay in the outbox."""
        self._stopped.set()
        self._outbox.wake()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        seen = -1
        try:
            while not self._stopped.is_set():
                seen = self._outbox.wait(self.step(), seen)
        except Exception as error:
            self._failure = error

    def step(self) -> float:
        """Send what can be sent now. Returns the seconds to wait before the next step, unless
        something is put in meanwhile."""
        while not self._stopped.is_set():
            groups = {group.number: group for group in self._outbox.groups()}
            parent = self._parent_now()
            decision = self._delivery.decide(
                self._clock(),
                groups,
                lambda number, groups=groups: self._panes(groups[number]),  # type: ignore[misc]
                self._told.accepted,
                self._root.health,
                None if parent is None else (parent.name, parent.health),
            )
            if isinstance(decision, Rest):
                return decision.seconds
            group = groups[decision.group]
            if isinstance(decision, Remove):
                if decision.by_parent:
                    self._goes(detour=False)
                self._remove(group)
            elif decision.by_parent and parent is not None:
                self._by_parent(group, parent)
            else:
                if decision.detour:
                    self._goes(detour=True)
                self._directly(group)
        return 0.0

    def _parent_now(self) -> DeliveryAttempt | None:
        """Returns the parent, if there is one and it is not gone."""
        way = self._current()
        parent = self._parent
        if parent is not None and parent.way is not way:
            if parent.health.silent or self._lost(parent.way):
                self._delivery.lost(parent.name)
            self._parent = parent = None
        if way is None:
            return None
        if parent is None:
            parent = self._parent = DeliveryAttempt(way, self._what, self._clock, self._say)
        if not parent.gone(self._patience):
            return parent
        self._delivery.lost(parent.name)
        if parent.health.silent:
            self._failed(way)
        return None

    def _panes(self, group: Group) -> Panes:
        return [(entry.pane, entry.until) for entry in self._outbox.read(group)]

    def _by_parent(self, group: Group, parent: DeliveryAttempt) -> None:
        body, key = self._request(group)
        self._last = parent
        self._delivery.given(group.number, parent.name, self._clock())
        try:
            if parent.post(self._path, body, key):
                self._delivery.taken(group.number)
                self._said = ""
        except ClientError as error:
            self._delivery.refused(group.number)
            self.detour = True
            self._say_once(f"{error}; for now they go to the root")

    def _directly(self, group: Group) -> None:
        body, key = self._request(group)
        self._last = self._root
        if self._root.post(self._path, body, key):
            self._remove(group)

    def _request(self, group: Group) -> tuple[bytes, str]:
        entries = self._outbox.read(group)
        body = lines(entry.body for entry in entries)
        return body, key_of(entries, body)

    def _goes(self, *, detour: bool) -> None:
        """Report a change of the way that panes take."""
        if detour != self.detour:
            self.detour = detour
            if detour and self._parent is not None:
                self._say(f"panes go to the root now, not by {self._parent.name}")
            elif self._parent is not None:
                self._say(f"panes go by {self._parent.name} again, not to the root")

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)

    def _remove(self, group: Group) -> None:
        self._delivery.removed(group.number)
        self._outbox.remove(group)


def key_of(entries: Sequence[OutboxEntry], body: bytes) -> str:
    """Returns the idempotency key of a request: always the same for the same content."""
    first, last = entries[0], entries[-1]
    digest = sha256(body).hexdigest()[:16]
    named = f"{quote(first.job)}/{quote(first.node)}/{first.pane}-{last.until}"
    return f"{named[: LONGEST_KEY - len(digest) - 1]}/{digest}"
