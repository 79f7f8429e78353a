"""Sends what is in the outbox to the root, directly or by a parent (iMR, 2.2 and 4.3).

DESIGN
------
A group goes out as one request, in the order of the groups, under an idempotency key that is made
of its content: whoever sends it again, after a crash or a broken connection, sends the same bytes
under the same key.

Sent to the root, it is removed when the root has it on disk. A parent has it in memory only, so
what was sent by one stays until the root tells that all its panes were accepted. If that does not
come within ten seconds, or within the time that the parent may hold it and five more, or if the
parent is gone, it is sent to the root directly, which ignores what it has. A parent that was gone
is used again when it answers. What it refuses for good goes to the root too: it may be of another
tree, from before the agent was given this parent, and only the root's refusal is the last word.
Where a node begins, a message of no panes, is told to the root only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Event, Thread
from urllib.parse import quote

from millstream.agent.bodies import lines
from millstream.agent.merging import patience_of
from millstream.agent.outbox import Entry, Group, Outbox, Say
from millstream.agent.told import Told
from millstream.agent.trying import Trying
from millstream.agent.wire import Way, stream_path
from millstream.errors import ClientError
from millstream.windows.placed import PlacedJob

ACCEPTED_WITHIN = 10.0
"""Seconds that a pane may take by a parent."""
LOOK_EVERY = 0.25
"""Seconds between two looks at what was accepted."""
IDLE = 60.0
LONGEST_KEY = 200


@dataclass(slots=True)
class _Known:
    """What is known of a group, if there is a parent."""

    panes: list[tuple[int, int]]
    tried: float | None = None
    """When it was first given to the parent."""
    taken: bool = False
    """Whether the parent took it."""
    refused: bool = False
    """Whether it never will."""

    @property
    def any_panes(self) -> bool:
        return any(pane < until for pane, until in self.panes)


class Sender:
    """A thread that empties the outbox."""

    def __init__(
        self,
        outbox: Outbox,
        placed: PlacedJob,
        *,
        root: Way,
        parent: Way | None,
        told: Told,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        what = f"the panes of job {placed.name!r}"
        self._outbox, self._told, self._clock, self._say = outbox, told, clock, say
        self._path = stream_path(placed.panes)
        self._root = Trying(root, what, clock, say)
        self._parent = None if parent is None else Trying(parent, what, clock, say)
        self._patience = max(ACCEPTED_WITHIN, patience_of(placed.job, below=False) + 5)
        self._known: dict[int, _Known] = {}
        self.direct = parent is None
        """Whether panes go to the root, not to the parent."""
        self._last = self._root
        self._said = ""
        """What was last said of a parent's refusal."""
        self._stopped = Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="sender", daemon=True)

    @property
    def paused(self) -> str | None:
        """Why nothing goes out, or None if it does."""
        return self._last.paused

    @property
    def running(self) -> bool:
        """Whether its thread is at work."""
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        """Raise what has ended the thread, if it was not `stop`: a pane that is never taken."""
        if self._failure is not None:
            raise self._failure

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread; what was not sent stays in the outbox."""
        self._stopped.set()
        self._outbox.wake()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def drain(self, seconds: float) -> bool:
        """Wait until the root has all of the outbox; whether it has."""
        return self._outbox.wait_empty(seconds)

    def _run(self) -> None:
        seen = -1
        try:
            while not self._stopped.is_set():
                wait = self.step()
                if wait > 0:
                    seen = self._outbox.wait(wait, seen)
        except Exception as error:
            self._failure = error

    def step(self) -> float:
        """Send what can be sent now; how many seconds to wait then, if nothing is put in."""
        wait = IDLE
        gone = self._parent is not None and self._parent.gone(self._patience)
        for group in self._outbox.groups():
            if self._stopped.is_set():
                return 0
            trying = self._root
            if self._parent is not None:
                known = self._knows(group)
                if self._accepted(known):
                    if known.taken:
                        self._goes(direct=False)
                    self._remove(group)
                    continue
                if gone or not self._by_parent(known):
                    if known.any_panes:
                        self._goes(direct=True, said=known.refused)
                else:
                    trying = self._parent
                    if known.taken:
                        wait = min(wait, LOOK_EVERY)
                        continue
            held = trying.not_before - self._clock()
            if held > 0:
                return min(wait, held)
            self._send(group, trying)
            wait = 0
        return wait

    def _knows(self, group: Group) -> _Known:
        known = self._known.get(group.number)
        if known is None:
            entries = self._outbox.read(group)
            known = _Known([(entry.pane, entry.until) for entry in entries])
            self._known[group.number] = known
        return known

    def _accepted(self, known: _Known) -> bool:
        told = self._told
        return known.any_panes and all(told.accepted(*panes) for panes in known.panes)

    def _by_parent(self, known: _Known) -> bool:
        """Whether a group is for the parent, and the parent still has its time for it."""
        in_time = known.tried is None or self._clock() - known.tried < self._patience
        return known.any_panes and in_time and not known.refused

    def _send(self, group: Group, trying: Trying) -> None:
        entries = self._outbox.read(group)
        body = lines(entry.body for entry in entries)
        key = key_of(entries, body)
        self._last = trying
        if trying is self._root:
            if trying.post(self._path, body, key):
                self._remove(group)
            return
        known = self._known[group.number]
        if known.tried is None:
            known.tried = self._clock()
        try:
            known.taken = trying.post(self._path, body, key)
        except ClientError as error:
            known.refused = True
            self._say_once(f"{error}; for now they go to the root")
        else:
            self._said = "" if known.taken else self._said

    def _goes(self, *, direct: bool, said: bool = False) -> None:
        """Say so, if the panes go another way now and it was not `said`."""
        if direct != self.direct and self._parent is not None:
            self.direct = direct
            name = self._parent.name
            if direct and not said:
                self._say(f"panes go to the root now, not by {name}")
            elif not direct:
                self._say(f"panes go by {name} again, not to the root")

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)

    def _remove(self, group: Group) -> None:
        self._known.pop(group.number, None)
        self._outbox.remove(group)


def key_of(entries: Sequence[Entry], body: bytes) -> str:
    """The idempotency key of a request: the same for the same content, at any time."""
    first, last = entries[0], entries[-1]
    digest = sha256(body).hexdigest()[:16]
    named = f"{quote(first.job)}/{quote(first.node)}/{first.pane}-{last.until}"
    return f"{named[: LONGEST_KEY - len(digest) - 1]}/{digest}"
