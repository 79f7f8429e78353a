"""The ledger of a job: every pane of every node is taken in once (iMR, sections 2.3.1 and 4.4).

The update `NAME.ledger` has one table for the job and takes the messages of all nodes, one after
the other. A message is taken only if none of its panes was taken before: a pane may come in a
parent's message and, when the parent was too slow, once more from its own node or by another
parent. What was taken is split by reducer, each part with the manifests of all its nodes, and the
agents are told.

    meta         the schedule of the reducers; how many messages were repeated; whether an earlier
                 version has kept the ledger before (`Meta`)
    node|NODE    what was taken of a node (`Account`); read and written only for the nodes of a
                 message, so that a message costs the same however many nodes the job has

It also checks the nodes' own counts. A node says how many records its reader has read at the end of
each pane; where two panes meet, the count at the end of one must be that at the beginning of the
other. What is amiss goes with the message as records that were read and are nowhere (`accounts`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypedDict

from millstream.codec import shard_of
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.model.slate import Table
from millstream.windows.accounts import mark_of
from millstream.windows.job import Job
from millstream.windows.message import Manifest, Message
from millstream.windows.reducers import BEGINNING, NEVER, Schedule, in_force, order_of, schemes

KEY = ""
"""Of the ledger: a job has one."""
LONGEST = 100_000
"""Panes of the longest run that windows are made of. A node that jumps farther, by a line with the
time of another century, is absent in between: else all others would have to wait for the root."""
Run = list[int]
"""[first pane, pane after the last, records read before, records read after, life]"""


class Part(TypedDict):
    """What a reducer is told of a message."""

    _order: str
    """Parts of one time are taken in the order of their panes (`reducers.order_of`)."""
    pane: int
    until: int
    marks: dict[str, list[Any]]
    """By node, its mark of each of the panes (see `accounts`)."""
    begin: list[str]
    """Nodes that begin there: they are absent before."""
    over: dict[str, int]
    """Nodes whose logs end, each with the pane that it ends at; `NEVER`: one that had ended goes
    on."""
    late: dict[str, dict[str, int]]
    """By node, the late records that it has found, by pane."""
    claimed: dict[str, dict[str, int]]
    """By node, the records that say to be of a pane, and are not believed."""
    partials: dict[str, Any]
    """Of this reducer's keys."""
    accounted: bool
    """Whether the nodes' accounts are kept here."""
    schedule: Schedule


@dataclass
class Meta:
    """What the ledger knows of the job."""

    schedule: Schedule = field(default_factory=list)
    repeated: int = 0
    """Messages that had a pane that was taken before."""
    carried: bool = False
    """Whether the job ran before there was a ledger: its nodes may have panes that are not here."""


@dataclass
class Account:
    """What was taken of a node."""

    runs: list[Run] = field(default_factory=list)
    """In order: panes without a gap between them."""
    life: int = 0
    """How often the node has begun to count anew, having lost what it knew."""
    over: int = NEVER
    """The pane that its log ends at; `NEVER`: it goes on."""

    def turn(self, pane: int, until: int, over: bool) -> bool:
        """Note whether the log ends, or goes on after it had ended; whether that is new."""
        before = self.over
        if over:
            beyond = has_any(self.runs, until, NEVER)  # then the message is an old one
            self.over = before if beyond else until
        elif until > before or pane == until >= before:
            self.over = NEVER
        return self.over != before


def entry_of(node: str) -> str:
    """The entry of a node's account."""
    return f"node|{node}"


def counted(manifest: Manifest) -> int:
    """The records that a manifest accounts for."""
    late = sum(manifest["late"].values())
    return manifest["records"] + manifest["shed"] + manifest["dead"] + late


def has_any(runs: list[Run], pane: int, until: int) -> bool:
    """Whether any of the panes was taken."""
    return any(run[0] < until and pane < run[1] for run in runs)


def has_all(runs: list[Run], pane: int, until: int) -> bool:
    """Whether all of the panes were taken."""
    have = sum(max(0, min(run[1], until) - max(run[0], pane)) for run in runs)
    return have == until - pane


def put(runs: list[Run], pane: int, until: int, manifest: Manifest, life: int) -> int:
    """Take panes in; how many more records are now known to have been read.

    That is what the manifest accounts for and, where the panes meet others of the same life, what
    lies between the counts on both sides: nothing, if the node's counts are right.
    """
    read = counted(manifest)
    new = [pane, until, manifest["total"] - read, manifest["total"], life]
    index = bisect_left(runs, [pane])
    if index < len(runs) and runs[index][0] == until and runs[index][4] == life:
        after = runs.pop(index)
        read += after[2] - new[3]
        new = [pane, after[1], new[2], after[3], life]
    if index > 0 and runs[index - 1][1] == pane and runs[index - 1][4] == life:
        index -= 1
        before = runs.pop(index)
        read += new[2] - before[3]
        new = [before[0], new[1], before[2], new[3], life]
    runs.insert(index, new)
    return read


@dataclass(frozen=True)
class PaneLedger:
    """The update `NAME.ledger`."""

    job: Job
    name: str
    tells: bool
    """Whether there are agents to be told."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, table: Table) -> Iterator[Emit]:
        meta = Meta(**table.get("meta", {}))
        if event.stream == f"{self.name}.schedule":
            yield from self._change(table, meta, event.value)
            return
        message: Message = event.value
        pane, until, nodes = message["pane"], message["until"], message["nodes"]
        accounts = {node: Account(**table.get(entry_of(node), {})) for node in nodes}
        turned, begin = self._turned(message, accounts), list[str]()
        read = dict.fromkeys(nodes, 0)
        if pane == until:
            ended = {node for node in nodes if message.get("over") and entry_of(node) in table}
            begin = [
                node
                for node, told in nodes.items()
                if _begins(
                    accounts[node],
                    pane,
                    told["total"],
                    (meta.carried and told["total"] > 0) or node in ended,
                )
            ]
            _save(table, {node: accounts[node] for node in (*begin, *turned)})
        elif any(has_any(account.runs, pane, until) for account in accounts.values()):
            meta.repeated += 1
            table["meta"] = vars(meta)
            taken = [node for node in nodes if has_all(accounts[node].runs, pane, until)]
            yield from self._accept(pane, until, taken)
            return
        else:
            for node, told in nodes.items():
                read[node] = put(accounts[node].runs, pane, until, told, accounts[node].life)
            _save(table, accounts)
            if until - pane > LONGEST:
                message, begin = {**message, "pane": until}, [*nodes]
        yield from self._parts(message, read, meta.schedule, begin, turned)
        yield from self._accept(pane, until, nodes)

    def _turned(self, message: Message, accounts: dict[str, Account]) -> dict[str, int]:
        """The nodes of a message whose logs end with it, or go on, and where they end now."""
        pane, until, over = message["pane"], message["until"], message.get("over", False)
        return {
            node: account.over
            for node, account in accounts.items()
            if account.turn(pane, until, over)
        }

    def _accept(self, pane: int, until: int, nodes: Iterable[str]) -> Iterator[Emit]:
        """Tell the agents that panes of nodes are taken in."""
        accepted = sorted(nodes)
        if self.tells and accepted:
            value = {"accepted": {"pane": pane, "until": until, "nodes": accepted}}
            yield emit(f"{self.name}.told", value=value)

    def _change(self, table: Table, meta: Meta, told: dict[str, Any]) -> Iterator[Emit]:
        """Take a new schedule. New reducers are told which logs have ended: no message will."""
        known = {number for _, number in meta.schedule}
        meta.schedule, meta.carried = told["schedule"], meta.carried or told["carried"]
        table["meta"] = vars(meta)
        new = {number for _, number in meta.schedule} - known
        if not known or not new:
            return
        over = {
            entry.removeprefix("node|"): stored["over"]
            for entry, stored in table.scan("node|", "node}")
            if stored["over"] != NEVER
        }
        for number in sorted(new) if over else ():
            for reducer in range(number):
                value = Part(
                    _order=order_of(BEGINNING),
                    pane=0,
                    until=0,
                    marks={},
                    begin=[],
                    over=over,
                    late={},
                    claimed={},
                    partials={},
                    accounted=False,
                    schedule=meta.schedule,
                )
                yield emit(f"{self.name}.parts", key=f"{number}/{reducer}", value=value)

    def _parts(
        self,
        message: Message,
        read: dict[str, int],
        schedule: Schedule,
        begin: list[str],
        over: dict[str, int],
    ) -> Iterator[Emit]:
        """A part for each reducer, of every number of reducers that windows of the panes have."""
        span = self.job.span
        others = (
            int(pane)
            for told in message["nodes"].values()
            for pane in (*told["late"], *told.get("claimed", ()))
        )
        earliest = min(message["pane"], *others, message["pane"])
        first, last = span.panes_of(span.windows_of(earliest)[0])[0], message["until"]
        if begin:  # they are absent in all windows before, whose number of reducers may be another
            first = BEGINNING
        if over:  # so it is with windows after, which others may have reached
            first, last = BEGINNING, NEVER
        newest = span.panes_of(span.windows_of(message["pane"])[-1])[0]
        accounted = in_force(schedule, newest)
        marks = {node: mark_of(told, read[node]) for node, told in message["nodes"].items()}
        late = {node: told["late"] for node, told in message["nodes"].items() if told["late"]}
        claimed = {
            node: told["claimed"] for node, told in message["nodes"].items() if "claimed" in told
        }
        for number in schemes(schedule, first, last):
            partials: list[dict[str, Any]] = [{} for _ in range(number)]
            for key, partial in message["partials"].items():
                partials[shard_of(self.name, key, number)][key] = partial
            for reducer, part in enumerate(partials):
                value = Part(
                    _order=order_of(message["pane"]),
                    pane=message["pane"],
                    until=message["until"],
                    marks=marks,
                    begin=begin,
                    over=over,
                    late=late,
                    claimed=claimed,
                    partials=part,
                    accounted=number == accounted,
                    schedule=schedule,
                )
                yield emit(f"{self.name}.parts", key=f"{number}/{reducer}", value=value)


def _save(table: Table, accounts: dict[str, Account]) -> None:
    for node, account in accounts.items():
        table[entry_of(node)] = vars(account)


def _begins(account: Account, pane: int, total: int, known: bool) -> bool:
    """Whether a node that says where it is begins there, and has no panes before but those that it
    has sent. One that goes on after a stop does not: it is at a pane that it has not sent, and has
    counted as far as its panes before it. If that is not so, it has lost what it knew. One of which
    no pane was taken begins, unless it is `known` to have panes before: its end came first, or the
    ledger was carried over from a store without one, and it has read something."""
    for first, end, before, after, life in account.runs:
        sent = first <= pane < end
        amiss = after > total if end <= pane else before < total
        if life == account.life and (sent or amiss):
            account.life += 1
            return True
    return not account.runs and not known
