"""The ledger of a job: every pane of every node is taken in once (iMR, sections 2.3.1 and 4.4).

The update `NAME.ledger` has one table for the job and takes the messages of all nodes, one after
the other. It takes a message only if it has taken none of its panes before. A pane may come in a
parent's message and, if the parent was too slow, again from its own node or from another parent.
Each message that was taken is split by reducer, each part with the manifests of all its nodes. The
agents are told that it was accepted.

    meta         the schedule of the reducers; the number of repeated messages; whether the job
                 ran before there was a ledger (`LedgerMeta`)
    node|NODE    the panes taken from a node (`NodeLedger`). Only the entries of a message's own
                 nodes are read and written, so a message costs the same however many nodes the job
                 has

The ledger also checks the nodes' own counts. A node says how many records its reader has read at
the end of each pane. Where two panes meet, the count at the end of one must equal the count at the
beginning of the other. A difference is passed on with the message, as records that were read but
are in no other count (`accounts`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.codec import shard_of
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.model.slate import Table
from millstream.trees.messages import AcceptedPanes, ToldRecord
from millstream.windows.panes.message import Message, PaneManifest
from millstream.windows.panes.pane_mark import PaneMark, mark_of, stored_marks
from millstream.windows.reducers import (
    BEGINNING,
    NEVER,
    NewSchedule,
    Schedule,
    in_force,
    order_of,
    schemes,
)

if TYPE_CHECKING:
    from millstream.windows.job import Job


class PaneRun(msgspec.Struct, frozen=True, array_like=True):
    """Panes of a node without a gap between them."""

    first: int
    until: int
    """The pane after the last."""
    before: int
    """Records that the node had read before these panes."""
    after: int
    """Records that it had read after them."""
    life: int
    """The `NodeLedger.life` in which it made them."""


class PanePart(msgspec.Struct, kw_only=True, frozen=True, rename={"order": "_order"}):
    """The part of a message that a reducer is sent."""

    order: str
    """Parts with the same time are taken in the order of their panes (`reducers.order_of`)."""
    pane: int
    until: int
    marks: dict[str, PaneMark]
    """Each node's mark, which holds for each of the panes."""
    begin: list[str]
    """Nodes that begin at `pane`: they are absent before."""
    over: dict[str, int] = {}
    """Nodes whose logs end, each with the pane at which it ends. `NEVER`: a log that had ended
    continues. Parts of an earlier version lack it."""
    late: dict[str, dict[str, int]]
    """The late records that each node has found, by pane."""
    claimed: dict[str, dict[str, int]] = {}
    """The misdated records of each node, by the pane to which they claim to belong. Parts of an
    earlier version lack it."""
    partials: dict[str, Any]
    """The combined values of this reducer's keys."""
    accounted: bool
    """True if this reducer keeps the nodes' accounts."""
    schedule: Schedule


class LedgerMeta(msgspec.Struct):
    """The ledger's data about the whole job."""

    schedule: Schedule = []
    repeated: int = 0
    """Messages with a pane that was taken before."""
    carried: bool = False
    """True if the job ran before there was a ledger: its nodes may have panes that are not in
    it."""


class NodeLedger(msgspec.Struct):
    """The panes that were taken from a node."""

    runs: list[PaneRun] = []
    """In the order of their panes."""
    life: int = 0
    """The number of times that the node has lost its state, and restarted its counts."""
    over: int = NEVER
    """The pane at which its log ends. `NEVER`: it continues."""

    def turn(self, pane: int, until: int, over: bool) -> bool:
        """Records that the log ends, or continues after it had ended. True if that is a change."""
        before = self.over
        if over:
            beyond = has_any(self.runs, until, NEVER)  # if so, the message is an old one
            self.over = before if beyond else until
        elif until > before or pane == until >= before:
            self.over = NEVER
        return self.over != before


def entry_of(node: str) -> str:
    """Returns the name of a node's entry."""
    return f"node|{node}"


def counted(manifest: PaneManifest) -> int:
    """Returns the number of records that a manifest accounts for."""
    late = sum(manifest.late.values())
    return manifest.records + manifest.shed + manifest.dead + late


def has_any(runs: list[PaneRun], pane: int, until: int) -> bool:
    """True if any of the panes was taken."""
    return any(run.first < until and pane < run.until for run in runs)


def has_all(runs: list[PaneRun], pane: int, until: int) -> bool:
    """True if all of the panes were taken."""
    taken = sum(max(0, min(run.until, until) - max(run.first, pane)) for run in runs)
    return taken == until - pane


def put(runs: list[PaneRun], pane: int, until: int, manifest: PaneManifest, life: int) -> int:
    """Takes panes in. Returns how many more records are now known to have been read.

    That is the number that the manifest accounts for. Where the panes meet others of the same life,
    the difference between the counts on both sides is added. It is 0 if the node's counts are
    right.
    """
    read = counted(manifest)
    new = PaneRun(pane, until, manifest.total - read, manifest.total, life)
    index = bisect_left(runs, pane, key=attrgetter("first"))
    if index < len(runs) and runs[index].first == until and runs[index].life == life:
        later = runs.pop(index)
        read += later.before - new.after
        new = PaneRun(pane, later.until, new.before, later.after, life)
    if index > 0 and runs[index - 1].until == pane and runs[index - 1].life == life:
        index -= 1
        earlier = runs.pop(index)
        read += new.before - earlier.after
        new = PaneRun(earlier.first, new.until, earlier.before, new.after, life)
    runs.insert(index, new)
    return read


@dataclass(frozen=True)
class PaneLedger:
    """The update `NAME.ledger`."""

    job: Job
    name: str
    tells: bool
    """True if there are agents to notify."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, table: Table) -> Iterator[Emit]:
        meta = msgspec.convert(table.get("meta", {}), LedgerMeta)
        if event.stream == f"{self.name}.schedule":
            yield from self._change(table, meta, msgspec.convert(event.value, NewSchedule))
            return
        message = msgspec.convert(event.value, Message)
        pane, until, nodes = message.pane, message.until, message.nodes
        accounts = {
            node: msgspec.convert(table.get(entry_of(node), {}), NodeLedger) for node in nodes
        }
        turned, begin = self._turned(message, accounts), list[str]()
        if message.over and pane == -self.job.span.furthest:
            _save(table, {node: accounts[node] for node in turned})
            if turned:
                yield from self._ended(turned, meta.schedule, schemes(meta.schedule, pane, NEVER))
            yield from self._accept(pane, until, nodes)
            return
        read = dict.fromkeys(nodes, 0)
        if pane == until:
            ended = {node for node in nodes if message.over and entry_of(node) in table}
            begin = [
                node
                for node, manifest in nodes.items()
                if _begins(
                    accounts[node],
                    pane,
                    manifest.total,
                    (meta.carried and manifest.total > 0) or node in ended,
                )
            ]
            _save(table, {node: accounts[node] for node in (*begin, *turned)})
        elif any(has_any(account.runs, pane, until) for account in accounts.values()):
            meta.repeated += 1
            table["meta"] = meta
            taken = [node for node in nodes if has_all(accounts[node].runs, pane, until)]
            yield from self._accept(pane, until, taken)
            return
        else:
            for node, manifest in nodes.items():
                read[node] = put(accounts[node].runs, pane, until, manifest, accounts[node].life)
            _save(table, accounts)
        yield from self._parts(message, read, meta.schedule, begin, turned)
        yield from self._accept(pane, until, nodes)

    def _turned(self, message: Message, accounts: dict[str, NodeLedger]) -> dict[str, int]:
        """Returns the nodes of a message whose logs end with it, or continue, and where each ends
        now."""
        pane, until, over = message.pane, message.until, message.over
        return {
            node: account.over
            for node, account in accounts.items()
            if account.turn(pane, until, over)
        }

    def _accept(self, pane: int, until: int, nodes: Iterable[str]) -> Iterator[Emit]:
        """Tells the agents that panes of nodes were taken in."""
        accepted = sorted(nodes)
        if self.tells and accepted:
            notice = ToldRecord(accepted=AcceptedPanes(pane, until, accepted))
            yield emit(f"{self.name}.told", value=notice)

    def _change(self, table: Table, meta: LedgerMeta, change: NewSchedule) -> Iterator[Emit]:
        """Stores a new schedule. Tells new reducers which logs have ended, since no later message
        will."""
        known = {number for _, number in meta.schedule}
        meta.schedule, meta.carried = change.schedule, meta.carried or change.carried
        table["meta"] = meta
        new = {number for _, number in meta.schedule} - known
        if not known or not new:
            return
        over = {
            entry.removeprefix("node|"): ledger.over
            for entry, stored in table.scan("node|", "node}")
            if (ledger := msgspec.convert(stored, NodeLedger)).over != NEVER
        }
        if over:
            yield from self._ended(over, meta.schedule, sorted(new))

    def _ended(
        self, over: dict[str, int], schedule: Schedule, numbers: Iterable[int]
    ) -> Iterator[Emit]:
        """Tells reducers where logs have ended, and nothing else."""
        for number in numbers:
            for reducer in range(number):
                value = PanePart(
                    order=order_of(BEGINNING),
                    pane=0,
                    until=0,
                    marks={},
                    begin=[],
                    over=over,
                    late={},
                    claimed={},
                    partials={},
                    accounted=False,
                    schedule=schedule,
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
        """Yields a part for each reducer, for every number of reducers that windows of the panes
        have."""
        span = self.job.span
        others = (
            int(pane)
            for manifest in message.nodes.values()
            for pane in (*manifest.late, *manifest.claimed)
        )
        earliest = min(message.pane, *others, message.pane)
        first, last = span.panes_of(span.windows_of(earliest)[0])[0], message.until
        if begin:  # windows before lack these nodes, and may have another number of reducers
            first = BEGINNING
        if over:  # the same holds for windows after it, which other nodes may have reached
            first, last = BEGINNING, NEVER
        newest = span.panes_of(span.windows_of(message.pane)[-1])[0]
        accounted = in_force(schedule, newest)
        marks = stored_marks(
            {node: mark_of(manifest, read[node]) for node, manifest in message.nodes.items()}
        )
        late = {node: manifest.late for node, manifest in message.nodes.items() if manifest.late}
        claimed = {
            node: manifest.claimed for node, manifest in message.nodes.items() if manifest.claimed
        }
        for number in schemes(schedule, first, last):
            partials: list[dict[str, Any]] = [{} for _ in range(number)]
            for key, partial in message.partials.items():
                partials[shard_of(self.name, key, number)][key] = partial
            for reducer, part in enumerate(partials):
                value = PanePart(
                    order=order_of(message.pane),
                    pane=message.pane,
                    until=message.until,
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


def _save(table: Table, accounts: dict[str, NodeLedger]) -> None:
    for node, account in accounts.items():
        table[entry_of(node)] = account


def _begins(account: NodeLedger, pane: int, total: int, known: bool) -> bool:
    """True if a node that reports its position begins there: it has no earlier panes except those
    that it has sent.

    A node that continues after a stop does not begin: it is at a pane that it has not sent, and its
    count agrees with its earlier panes. Otherwise the node has lost its state. A node of which no
    pane was taken begins, unless it is `known` to have earlier panes: its end came first, or the
    ledger was added to an older store and the node has read something.
    """
    for run in account.runs:
        sent = run.first <= pane < run.until
        disagrees = run.after > total if run.until <= pane else run.before < total
        if run.life == account.life and (sent or disagrees):
            account.life += 1
            return True
    return not account.runs and not known
