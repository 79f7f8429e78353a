"""Checks that a changed application can continue from the contents of its store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.engine.cells.cell import stored_outbox
from millstream.errors import StoreError
from millstream.model.workflow import Workflow
from millstream.stores.contract import Store, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import queue_directory, waiting_of
from millstream.stores.progress import Progress


def check_continues(
    workflow: Workflow, home: Home, store: Store, progress: Progress, renamed: Mapping[str, str]
) -> None:
    """Refuses a change that would strand stored events or give stored slates another meaning.

    `renamed` maps updates that are being renamed to their former names.
    """
    check_parts(workflow.parts, home, progress)
    behind = progress.waiting - progress.pending.held
    if workflow.order == "arrival" and behind > 0:
        raise StoreError(
            f"{home.path}: events wait for the horizon ({behind:,}), and "
            "in arrival order nothing would let them through; run once more with "
            'order="event-time" and --final, then change the order'
        )
    if not (progress.waiting or progress.pending.feedback):
        return

    def stored(name: str) -> str:
        return home.facts.stored(renamed.get(name, name))

    placed = {stored(function.name) for layer in workflow.layers for function in layer}
    emitters = {stored(emitter) for emitter, _, _ in workflow.feedback}
    updates = {stored(update.name) for update in workflow.updates}  # only updates have queues
    known = {stored(function.name) for function in workflow.functions}
    for name in home.facts.functions:
        for waiting, takers in ((waiting_of(name), placed), (queue_directory(name), updates)):
            if name not in takers and _has_rows(store, waiting, progress.batch):
                raise StoreError(_stranded(home, f"events wait for {name!r}"))
        for target in _feedback_targets(store, name, progress.batch):
            if name not in emitters or target not in known:
                raise StoreError(_stranded(home, f"{name!r} has sent events back to {target!r}"))


def check_parts(parts: Mapping[str, Any], home: Home, progress: Progress) -> None:
    """Refuses a change to a part, such as a job, that has slates of its former form.

    The panes of a job cannot be put into other windows, and would be treated as panes of those.
    """
    for name, form in lasting(parts).items():
        stored = home.facts.parts.get(name, form)
        used = any(
            function.startswith(f"{name}.") and counts.processed
            for function, counts in progress.functions.items()
        )
        if stored != form and used:
            raise StoreError(
                f"{home.path}: {name!r} has {stored} here, and the application now says {form}: "
                "the stored ones would be treated as the new ones; give the job another name, or "
                "start with a new store"
            )


def lasting(parts: Mapping[str, Any]) -> dict[str, str]:
    """Returns, by name, the properties of an application's parts that must not change."""
    return {name: part["lasting"] for name, part in parts.items() if "lasting" in part}


def _stranded(home: Home, events: str) -> str:
    return (
        f"{home.path}: {events}, and the application was changed so that they would be lost; run "
        "it once more as it was with --final, then change it"
    )


def _has_rows(store: Store, prefix: bytes, committed: int) -> bool:
    for number in range(store.shards):
        with store.shard(number).at(committed) as view:
            if next(view.scan(prefix, after_prefix(prefix)), None) is not None:
                return True
    return False


def _feedback_targets(store: Store, function: str, committed: int) -> set[str]:
    targets: set[str] = set()
    for number in range(store.shards):
        with store.shard(number).at(committed) as view:
            targets.update(target for target, _ in stored_outbox(view, function))
    return targets
