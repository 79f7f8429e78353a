"""Panes that a parent is merging: the active pane list (iMR, 4.2).

DESIGN
------
A parent holds the messages of a pane until it has heard of that pane from itself and from all of
its children, or for as long as its patience lasts; then their partials are merged and go on as one
message. What comes after that is sent on as it is: *fast-forwarded*. A node that says where it
begins has nothing to say of panes before.

The root takes a message if it has none of its panes yet, and else ignores the whole of it; a node
whose pane was not taken sends it again, by itself. That counts each pane of each node once if
whoever merges keeps to one rule: **a message goes into one other message whole, or is sent on as
it came**. So messages are merged only if they are of the same panes; a run of empty panes is never
cut, since its node would send the whole run again, and the root would ignore what is missing of it.

A message whose nodes are all among those held of its panes is a repeat, and is dropped. If only
some of them are, it is sent on as it came: at the root one of the two loses, and the nodes that
were only in that one send their panes once more.

Pure: the time, in seconds that never go back, is an argument. Nothing is kept on disk, since the
nodes have it all, and partials stay JSON until they are merged: they take the least memory so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import msgspec

from millstream.agent.bodies import LONGEST
from millstream.codec import encode_value
from millstream.model.duration import microseconds
from millstream.trees.ranges import Ranges
from millstream.windows.job import Job

PATIENCE = 5.0
"""Seconds, if the job has no latency."""


class Heard(msgspec.Struct):
    """A message as a parent reads it: see `windows.message.Message`."""

    pane: int
    until: int
    nodes: dict[str, msgspec.Raw]
    partials: msgspec.Raw
    tree: str = ""
    span: str = ""
    over: bool = False
    """Whether nothing follows of these nodes."""
    line: bytes = b""
    """The whole of it, as it came."""


_decoder = msgspec.json.Decoder(Heard)
_partials = msgspec.json.Decoder(dict[str, Any])


def heard(line: bytes) -> Heard:
    """The message of a line; ValueError (msgspec's) if it is none."""
    message = _decoder.decode(line)
    message.line = line
    return message


def patience_of(job: Job, depth: int) -> float:
    """Seconds that a parent waits for its children: half of the job's latency, else `PATIENCE`; and
    half as long for each parent above it, who waits for it in turn."""
    whole = PATIENCE
    if job.latency is not None:
        whole = microseconds(job.latency, "job: latency") / 2_000_000
    return whole / 2.0**depth


@dataclass(slots=True)
class _Active:
    """The messages of a pane, or of a run of them, that are held."""

    deadline: float
    messages: list[Heard] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)


class ActivePanes:
    """What a parent holds, and when it lets it go."""

    def __init__(
        self,
        job: Job,
        nodes: Collection[str],
        patience: float,
        unwanted: Callable[[int], bool] = lambda pane: False,
    ) -> None:
        """`nodes` are those that are waited for, the parent itself among them; what is `unwanted`,
        since its windows are closed, is not worth merging."""
        self._job = job
        self.patience = patience
        """Seconds for which a pane is held."""
        self._unwanted = unwanted
        self._active: dict[tuple[int, int], _Active] = {}
        """By its panes; in the order of the deadlines."""
        self._runs: set[tuple[int, int]] = set()
        """Those of more than one pane."""
        self._said = {node: Ranges() for node in nodes}
        self._gone = Ranges()
        """Panes that were sent."""
        self._ready: list[bytes] = []
        self.bytes = 0
        """Of the messages that are held, or ready to be sent."""
        self.repeated = 0
        self.forwarded = 0
        """Messages that were sent on as they came, since the others of their pane were gone."""

    def put(self, message: Heard, now: float) -> None:
        """Take a message in."""
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
        """Wait for these from now on. One that is new is not waited for with panes that are held
        already; one that is gone is waited for no more."""
        if self._said.keys() == set(nodes):
            return
        held = max((until for _, until in self._active), default=-inf)
        for node in [node for node in self._said if node not in nodes]:
            del self._said[node]
        for node in nodes:
            if node not in self._said:
                self._said[node] = Ranges()
                self._said[node].add(-inf, held)
        for panes in list(self._active):
            self._evict_if_complete(panes)

    def due(self, now: float) -> list[bytes]:
        """The lines that are to be sent now, in the order in which they are."""
        while self._active:
            panes, held = next(iter(self._active.items()))
            if held.deadline > now:
                break
            self._evict(panes)
        ready, self._ready = self._ready, []
        self.bytes -= sum(map(len, ready))
        return ready

    def heard_of(self) -> dict[str, int | None]:
        """By node that is waited for: up to which pane it has said something; None: nothing yet, or
        that all is said."""
        last = {node: max(said, default=(0, -inf))[1] for node, said in self._said.items()}
        return {node: int(until) if isfinite(until) else None for node, until in last.items()}

    def next_due(self) -> float:
        """When to call `due` again: at once (-inf), at that time, or when more was put in (inf)."""
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
        """What is held and may be complete, now that something was said of these panes."""
        if until - pane == 1:  # as nearly all are
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
    """Messages of the same panes and of different nodes as one line.

    They stay as they came if one line cannot hold them, or if merging fails: the root merges too,
    and says what is wrong. The bounds of a sample need the values of each node: of a job with such
    bounds only messages without values become one.
    """
    if job.apart:
        valued = [message.line for message in messages if message.partials != _NOTHING]
        return valued + _one([one for one in messages if one.partials == _NOTHING], job)
    return _one(messages, job)


_NOTHING = msgspec.Raw(b"{}")


def _one(messages: list[Heard], job: Job) -> list[bytes]:
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
        "nodes": {node: told for one in messages for node, told in one.nodes.items()},
        "partials": msgspec.Raw(partials),
        "span": first.span,
    }
    line = msgspec.json.encode({"tree": first.tree, **whole} if first.tree else whole)
    return [line] if len(line) <= LONGEST else apart


def _merged(job: Job, given: list[msgspec.Raw]) -> dict[str, Any]:
    """The partials of all by key."""
    merging = job.merging
    found: dict[str, list[Any]] = {}
    for partials in given:
        for key, value in _partials.decode(partials).items():
            found.setdefault(key, []).append(value)
    merged: dict[str, Any] = {}
    for key, values in found.items():
        if len(values) == 1:
            merged[key] = values[0]
            continue
        whole = merging.read(values[0])
        for value in values[1:]:
            whole = merging.merge(whole, merging.read(value))
        merged[key] = merging.write(whole)
    return merged
