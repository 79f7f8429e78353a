"""Compares an application with the contents of its store, and lists the consequences.

`millstream plan` shows them. A start refuses those that are losses, unless the user accepts them.
A **consequence** is one sentence about an update, a source, a stream or the store. It is a loss if
stored data would become unreachable: slates that no update owns, slates that the update cannot
read, fields whose values would be dropped when the slate is next written, records that were
accepted and not taken in.

This module changes nothing. The only user functions that it calls are migrations, on copies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from millstream.counted_nouns import counted, verb
from millstream.driver.startup.compatibility import check_continues
from millstream.driver.startup.consequence import Consequence
from millstream.driver.startup.slate_consequences import kinds_fit, slate_consequences
from millstream.driver.startup.slate_shape import shape_of
from millstream.errors import StaleRead, StoreError
from millstream.letters.retry_log import RETRIED
from millstream.model.migration import migration_path
from millstream.model.workflow import Workflow
from millstream.stores.contract import Store
from millstream.stores.home import Facts, Home, SlateShape
from millstream.stores.progress import Progress

ALL = "all"
"""The name that accepts every loss."""


class ChangePlan(msgspec.Struct, frozen=True):
    """All consequences, and the facts that a start stores."""

    consequences: list[Consequence]
    renamed: dict[str, str] = {}
    """For each update that takes over the slates of a former name: that name."""
    shapes: dict[str, SlateShape] = {}
    orphaned: list[str] = []
    """Updates whose slates have no owner any more; the user accepted this loss."""

    def losses(self, accepted: Collection[str] = ()) -> list[Consequence]:
        """Returns the losses that were not accepted by name, without what is refused anyway."""
        if ALL in accepted:
            return []
        losses = (item for item in self.consequences if item.loss and item.state != "refused")
        return [loss for loss in losses if not _covers(accepted, loss.name)]

    @property
    def refused(self) -> list[Consequence]:
        """What a start refuses, whatever is accepted."""
        return [item for item in self.consequences if item.state == "refused"]

    def accepted(self, workflow: Workflow) -> ChangePlan:
        """Returns the plan with all losses accepted, so that the next start does not ask again."""
        shapes = {}
        for update in workflow.updates:
            shape = self.shapes[update.name]
            steps, wanted = update.migrations, update.version
            kept = [v for v in shape.versions if migration_path(steps, v, wanted) is not None]
            shapes[update.name] = msgspec.structs.replace(shape, versions=kept)
        orphaned = [item.name for item in self.consequences if item.state == "orphaned"]
        return ChangePlan(self.consequences, self.renamed, shapes, orphaned)


def _covers(names: Iterable[str], name: str) -> bool:
    """True if `names` has `name`, or the part of the application that it belongs to."""
    return any(name == part or name.startswith(f"{part}.") for part in names)


def plan_changes(
    workflow: Workflow,
    facts: Facts,
    progress: Progress,
    store: Store,
    *,
    sample: int | None,
    trust: bool = False,
    committed: Callable[[], int] | None = None,
    unread: Mapping[str, int] | None = None,
) -> ChangePlan:
    """Compares the workflow with a store, as of the store's last committed batch.

    Reads at most `sample` slates of each update in each shard (None: all). With `trust`, reads none
    for updates whose slates have the same shape as in the last run. `committed` returns the last
    batch of a store that is changing meanwhile. `unread` counts the unread records in the logs of
    sources that the application no longer has.
    """
    renamed = _renamed(workflow, facts)
    consequences = [*_updates(workflow, facts, progress, renamed)]
    shapes: dict[str, SlateShape] = {}
    for update in workflow.updates:
        former = renamed.get(update.name, update.name)
        shape, known = shape_of(update), facts.slates.get(former)
        stored = [] if known is None else known.versions
        older = [version for version in stored if version != update.version]
        shape.versions = [*older, update.version]
        if former in facts.updates and progress.slates.get(former, 1):
            look = sample
            same = known is not None and (known.digest, known.versions[-1]) == (
                shape.digest,
                update.version,
            )
            if trust and same:
                look = 0
            newest = committed or (lambda: progress.batch)
            consequences += slate_consequences(
                update, former, facts, known, store, newest, look, same=same
            )
        shapes[update.name] = shape
    consequences += _streams(workflow, facts, progress, unread or {})
    return ChangePlan(consequences, renamed, shapes)


def _renamed(workflow: Workflow, facts: Facts) -> dict[str, str]:
    """Maps each update that takes over the slates of a former name to that name."""
    renamed = {}
    for update in workflow.updates:
        former = [name for name in update.formerly if name in facts.updates]
        if former and update.name not in facts.updates:
            renamed[update.name] = former[0]
    return renamed


def _updates(
    workflow: Workflow, facts: Facts, progress: Progress, renamed: Mapping[str, str]
) -> Iterator[Consequence]:
    slates, taken = progress.slates, set(renamed.values())
    for update in workflow.updates:
        name = update.name
        former = [old for old in update.formerly if old in facts.updates and old not in taken]
        if name in renamed:
            become = _count(slates, renamed[name], " becomes", " become")
            text = f"has been {renamed[name]!r}: its {become} its own"
            yield Consequence("update", name, "renamed", text)
        elif name in facts.updates:
            yield Consequence("update", name, "kept", f"goes on with {_count(slates, name)}")
        else:
            yield Consequence("update", name, "new", "is new, and begins without slates")
        for old in former:
            text = (
                f"has slates of its own, so that those of its former name {old!r}, "
                f"{_count(slates, old)}, cannot become its own"
            )
            yield Consequence("update", old, "orphaned", text, loss=bool(slates.get(old)))
        kind = facts.updates.get(renamed.get(name, name), update.kind)
        if not kinds_fit(kind, update.kind) and slates.get(renamed.get(name, name), 1):
            text = (
                f"the slates are stored as {kind}, and the application now says {update.kind}: "
                "they cannot be read as that; give the update a new name="
            )
            yield Consequence("slates", name, "unfit", text, loss=True)
    claimed = {old for update in workflow.updates for old in update.formerly}
    known = {update.name for update in workflow.updates} | taken | claimed
    for name in facts.updates:
        if name in known:
            continue
        if _covers((*workflow.retired, *facts.retired), name):
            stay = _count(slates, name, " stays", " stay")
            text = f"was removed on purpose: {stay}, and can be read"
            yield Consequence("update", name, "retired", text)
        elif slates.get(name):
            belong = _count(slates, name, " belongs", " belong")
            text = (
                f"is gone, and its {belong} to no update: if it "
                f'was renamed, say formerly="{name}" there; if it was removed, say '
                f'app.retire("{name}")'
            )
            yield Consequence("update", name, "orphaned", text, loss=True)


def _count(slates: Mapping[str, int], name: str, does: str = "", do: str = "") -> str:
    """Returns the number of slates in words, with the matching form of the verb."""
    number = slates.get(name, 0)
    return counted(number, "slate") + verb(number, does, do)


def _streams(
    workflow: Workflow, facts: Facts, progress: Progress, unread: Mapping[str, int]
) -> Iterator[Consequence]:
    names = {source.name for source in workflow.sources}
    for name in sorted(names):
        if name in progress.sources:
            taken = progress.sources[name].events
            yield Consequence("source", name, "kept", f"goes on after {counted(taken, 'record')}")
        elif progress.batch >= 0:
            yield Consequence("source", name, "new", "is new, and is read from its beginning")
    for name in sorted({*progress.sources, *unread} - {*names, RETRIED}):
        left = unread.get(name, 0)
        text = "is gone: nothing is read from it any more"
        if left:
            were, are = verb(left, "was", "were"), verb(left, "is", "are")
            text += f", and {counted(left, 'record')} that {were} accepted {are} not taken in"
        yield Consequence("source", name, "gone", text, loss=bool(left))
    if facts.streams:
        known = set(facts.streams)
        for stream in workflow.streams:
            if stream not in known and stream not in names:
                yield Consequence("stream", stream, "new", "is new")
        for stream in facts.streams:
            if stream not in workflow.streams and stream not in progress.sources:
                yield Consequence("stream", stream, "gone", "is gone; its log stays, as it is")


def stranded_events(
    workflow: Workflow, home: Home, store: Store, progress: Progress, renamed: Mapping[str, str]
) -> Iterator[Consequence]:
    """Yields a loss that cannot be accepted: events that were taken in would be stranded."""
    try:
        check_continues(workflow, home, store, progress, renamed)
    except StaleRead:
        pass  # the application is running, and has committed more batches meanwhile
    except StoreError as error:
        yield Consequence("store", workflow.name, "refused", str(error), loss=True)


def rename_counts(progress: Progress, workflow: Workflow) -> None:
    """Continues the counts of renamed updates under their new names."""
    names = {former: update.name for update in workflow.updates for former in update.formerly}
    functions, costs = progress.functions, progress.timing.costs
    for former in names.keys() & functions.keys():
        functions.setdefault(names[former], functions.pop(former))
    for former in names.keys() & costs.keys():
        costs.setdefault(names[former], costs.pop(former))


def refusal(store: str, losses: Sequence[Consequence]) -> str:
    """Returns the error message of a start that refuses these losses."""
    first = losses[0]
    more = f" (and {len(losses) - 1} more)" if len(losses) > 1 else ""
    lost = dict.fromkeys(loss.name for loss in losses)
    names = " ".join(f"--accept-loss {name}" for name in lost)
    return (
        f"{store}: {first.subject} {first.name!r}: {first.text}{more}; see all with `millstream "
        f"plan`, or accept it with {names}; nothing was changed"
    )
