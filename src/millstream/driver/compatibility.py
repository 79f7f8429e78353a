"""Whether an application that was changed can go on from what its store holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.engine.cell import stored_outbox
from millstream.errors import StoreError
from millstream.model.workflow import Workflow
from millstream.stores.contract import Store, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import queue_directory, waiting_of
from millstream.stores.progress import Progress


def check_continues(workflow: Workflow, home: Home, store: Store, progress: Progress) -> None:
    """Refuse a change that would leave events that were taken in lying for ever, or slates that
    mean something else by now."""
    check_parts(workflow.parts, home, progress)
    if workflow.order == "arrival" and progress.waiting > progress.held:
        raise StoreError(
            f"{home.path}: {progress.waiting - progress.held} events wait for the horizon, and in "
            'arrival order nothing would let them through; run once more with order="event-time" '
            "and --final, then change the order"
        )
    if not (progress.waiting or progress.feedback):
        return
    placed = {function.name for layer in workflow.layers for function in layer}
    emitters = {emitter for emitter, _, _ in workflow.feedback}
    updates = {update.name for update in workflow.updates}  # no other function has a queue
    for name in home.facts.functions:
        for waiting, takers in ((waiting_of(name), placed), (queue_directory(name), updates)):
            if name not in takers and _has_rows(store, waiting, progress.batch):
                raise StoreError(_stranded(home, f"events wait for {name!r}"))
        for target in _feedback_targets(store, name, progress.batch):
            if name not in emitters or target not in {f.name for f in workflow.functions}:
                raise StoreError(_stranded(home, f"{name!r} has sent events back to {target!r}"))


def check_parts(parts: Mapping[str, Any], home: Home, progress: Progress) -> None:
    """Refuse another form of a part, such as a job, that has slates of the form that it had: the
    panes of a job cannot be put into other windows, and would be taken for theirs."""
    for name, said in lasting(parts).items():
        had = home.facts.parts.get(name, said)
        taken = any(of.startswith(f"{name}.") and count for of, count in progress.processed.items())
        if had != said and taken:
            raise StoreError(
                f"{home.path}: {name!r} has {had} here, and the application now says {said}: what "
                "is here would be taken for the new ones; give the job another name, or start "
                "with a new store"
            )


def lasting(parts: Mapping[str, Any]) -> dict[str, str]:
    """What must not change of the parts of an application, by their names."""
    return {name: part["lasting"] for name, part in parts.items() if "lasting" in part}


def _stranded(home: Home, what: str) -> str:
    return (
        f"{home.path}: {what}, and the application was changed so that they would be lost; run it "
        "once more as it was with --final, then change it"
    )


def _has_rows(store: Store, prefix: bytes, committed: int) -> bool:
    for number in range(store.shards):
        with store.shard(number).at(committed) as view:
            if next(view.scan(prefix, after_prefix(prefix)), None) is not None:
                return True
    return False


def _feedback_targets(store: Store, function: str, committed: int) -> set[str]:
    found: set[str] = set()
    for number in range(store.shards):
        with store.shard(number).at(committed) as view:
            found.update(target for target, _ in stored_outbox(view, function))
    return found
