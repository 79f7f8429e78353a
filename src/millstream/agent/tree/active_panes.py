"""The panes that a parent is merging: the active pane list (iMR, 4.2).

DESIGN
------
A parent holds the messages of a pane until it has one from itself and from each of its children, or
until its patience is over. Then it merges their partials and sends them as one message. A message
that comes after that is sent on as it came: *fast-forwarded*. A node that says where it begins has
no panes before that.

The root takes a message if it has none of its panes yet; otherwise it ignores the whole message. A
node whose pane was not taken sends it again, by itself. So each pane of each node counts once,
provided that parents follow one rule: **a message is merged as a whole into one other message, or
is sent on as it came**. So messages are merged only if they are of the same panes. A run of empty
panes is never cut: its node would send the whole run again, and the root would ignore the part that
it lacks.

A message whose nodes are all among the nodes held for its panes is a repeat, and is dropped. If
only some of the nodes overlap, the message is forwarded unchanged. The root accepts the first of
the two; nodes that were only in the second send their panes again.

Pure: the time, in seconds that never go back, is an argument. Nothing is kept on disk, since the
nodes have it all. Partials stay JSON until they are merged, which takes the least memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import msgspec

from millstream.agent.delivery.bodies import LONGEST
from millstream.codec import encode_value
from millstream.model.duration import microseconds
from millstream.trees.ranges import Ranges
from millstream.windows.job import Job

PATIENCE = 5.0
"""Seconds that a parent waits for its children, if the job has no latency."""


class Heard(msgspec.Struct):
    """A message as a parent reads it: see `windows.panes.message.Message`."""

    pane: int
    until: int
    nodes: dict[str, msgspec.Raw]
    partials: msgspec.Raw
    tree: str = ""
    span: str = ""
    over: bool = False
    """True if nothing follows from these nodes."""
    line: bytes = b""
    """The whole message, as it came."""


_decoder = msgspec.json.Decoder(Heard)
_partials = msgspec.json.Decoder(dict[str, Any])


def heard(line: bytes) -> Heard:
    """Parses a line into a message. Raises msgspec's DecodeError, a ValueError, if that fails."""
    message = _decoder.decode(line)
    message.line = line
    return message


def patience_of(job: Job, depth: int) -> float:
    """Returns the seconds that a parent waits for its children.

    That is half of the job's latency, or `PATIENCE` if it has none. Each parent above halves it,
    since that parent waits for this one in turn.
    """
    whole = PATIENCE
    if job.latency is not None:
        whole = microseconds(job.latency, "job: latency") / 2_000_000
    return whole / 2.0**depth


@dataclass(slots=True)
class _Active:
    """The held messages of a pane, or of a run of panes."""

    deadline: float
    messages: list[Heard] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)


class ActivePanes:
    """The messages that a parent holds, until they are complete or their time is over."""

    def __init__(
        self,
        job: Job,
        nodes: Collection[str],
        patience: float,
        unwanted: Callable[[int], bool] = lambda pane: False,
    ) -> None:
        """`nodes` are the nodes to wait for, the parent itself included. A pane is `unwanted` if
        its windows are closed: its messages are sent on unmerged."""
        self._job = job
        self.patience = patience
        """Seconds for which a pane is held."""
        self._unwanted = unwanted
        self._active: dict[tuple[int, int], _Active] = {}
        """Held messages by their panes, in the order of the deadlines."""
        self._runs: set[tuple[int, int]] = set()
        """The keys of `_active` that have more than one pane."""
        self._said = {node: Ranges() for node in nodes}
        self._gone = Ranges()
        """Panes whose messages were merged and released."""
        self._ready: list[bytes] = []
        self.bytes = 0
        """The bytes of the messages that are held, or ready to be sent."""
        self.repeated = 0
        self.forwarded = 0
        """Messages sent on as they came, since their pane was released before, or is unwanted."""

    def put(self, message: Heard, now: float) -> None:
        pane, until = message.pane, message.until
        for node in message.nodes:
            if node in self._said:
                self._said[node].add(pane if pane < until else -inf, inf if message.over else until)
        if pane == until:
            self._release([message.line])
        elif self._gone.meets(pane, until) or self._unwanted(pane):
            self.forwarded += 1
            self._release([message.line])
        else:
            self._hold(message, now)
        for panes in self._told_by(pane, until):
            self._evict_if_complete(panes)

    def expect(self, nodes: Collection[str]) -> None:
        """Wait for these nodes from now on. Panes that are held already do not wait for a new node,
        and nothing waits for a node that is gone."""
        if self._said.keys() == set(nodes):
            return
        held_until = max((until for _, until in self._active), default=-inf)
        for node in [node for node in self._said if node not in nodes]:
            del self._said[node]
        for node in nodes:
            if node not in self._said:
                self._said[node] = Ranges()
                self._said[node].add(-inf, held_until)
        for panes in list(self._active):
            self._evict_if_complete(panes)

    def due(self, now: float) -> list[bytes]:
        """Removes and returns the lines to send now, in the order in which to send them."""
        while self._active:
            panes, held = next(iter(self._active.items()))
            if held.deadline > now:
                break
            self._evict(panes)
        ready, self._ready = self._ready, []
        self.bytes -= sum(map(len, ready))
        return ready

    def heard_of(self) -> dict[str, int | None]:
        """Returns the pane up to which each node has sent something; None if it has sent nothing
        yet, or has reported the end of its log."""
        last = {node: max(said, default=(0, -inf))[1] for node, said in self._said.items()}
        return {node: int(until) if isfinite(until) else None for node, until in last.items()}

    def next_due(self) -> float:
        """Returns when to call `due` again: at once (-inf), then, or after the next `put` (inf)."""
        if self._ready:
            return -inf
        return next((held.deadline for held in self._active.values()), inf)

    def _hold(self, message: Heard, now: float) -> None:
        panes = message.pane, message.until
        held = self._active.get(panes)
        if held is None:
            held = self._active[panes] = _Active(now + self.patience)
            if message.until - message.pane > 1:
                self._runs.add(panes)
        if held.nodes.isdisjoint(message.nodes):
            held.messages.append(message)
            held.nodes.update(message.nodes)
            self.bytes += len(message.line)
        elif held.nodes.issuperset(message.nodes):
            self.repeated += 1
        else:
            self._release([message.line])

    def _told_by(self, pane: int, until: int) -> list[tuple[int, int]]:
        """Returns the held panes that a message of these panes may have completed."""
        if until - pane == 1:  # nearly all messages are of one pane
            return [panes for panes in ((pane, until), *self._runs) if panes in self._active]
        return list(self._active)

    def _evict_if_complete(self, panes: tuple[int, int]) -> None:
        if all(said.covers(*panes) for said in self._said.values()):
            self._evict(panes)

    def _evict(self, panes: tuple[int, int]) -> None:
        held = self._active.pop(panes)
        self._runs.discard(panes)
        self._gone.add(*panes)
        self.bytes -= sum(len(message.line) for message in held.messages)
        self._release(together(self._job, held.messages))

    def _release(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._ready.append(line)
            self.bytes += len(line)


def together(job: Job, messages: list[Heard]) -> list[bytes]:
    """Merges messages of the same panes and of different nodes into one line.

    They stay as they came if they do not fit into one line, or if merging fails: the root merges
    too, and reports the error. The bounds of a sample need the values of each node separately. For
    a job with such bounds (`job.apart`), only messages without values are merged.
    """
    if job.apart:
        valued = [message.line for message in messages if message.partials != _NOTHING]
        empty = [message for message in messages if message.partials == _NOTHING]
        return valued + _one_line(empty, job)
    return _one_line(messages, job)


_NOTHING = msgspec.Raw(b"{}")


def _one_line(messages: list[Heard], job: Job) -> list[bytes]:
    apart = [message.line for message in messages]
    kinds = {(message.tree, message.span) for message in messages}
    if len(messages) < 2 or len(kinds) > 1:
        return apart
    messages = sorted(messages, key=lambda message: min(message.nodes))
    try:
        partials = encode_value(_merged(job, [message.partials for message in messages]))
    except Exception:
        return apart
    first = messages[0]
    whole = {
        "pane": first.pane,
        "until": first.until,
        "nodes": {
            node: manifest for message in messages for node, manifest in message.nodes.items()
        },
        "partials": msgspec.Raw(partials),
        "span": first.span,
    }
    line = msgspec.json.encode({"tree": first.tree, **whole} if first.tree else whole)
    return [line] if len(line) <= LONGEST else apart


def _merged(job: Job, encoded: list[msgspec.Raw]) -> dict[str, Any]:
    """Merges partials by key."""
    merging = job.merging
    by_key: dict[str, list[Any]] = {}
    for partials in encoded:
        for key, value in _partials.decode(partials).items():
            by_key.setdefault(key, []).append(value)
    merged: dict[str, Any] = {}
    for key, values in by_key.items():
        if len(values) == 1:
            merged[key] = values[0]
            continue
        whole = merging.read(values[0])
        for value in values[1:]:
            whole = merging.merge(whole, merging.read(value))
        merged[key] = merging.write(whole)
    return merged
