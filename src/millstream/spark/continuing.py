"""Whether an application that was changed can go on from what its store holds."""

from __future__ import annotations

from millstream.engine.progress import Progress
from millstream.errors import StoreError
from millstream.model.workflow import Workflow
from millstream.stores.contract import Store, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import outbox_of, waiting_of


def check_continues(workflow: Workflow, home: Home, store: Store, progress: Progress) -> None:
    """Refuse a change that would leave events that were taken in lying for ever."""
    if workflow.order == "arrival" and progress.waiting:
        raise StoreError(
            f"{home.path}: {progress.waiting} events wait for the horizon, and in arrival order "
            'nothing would let them through; run once more with order="event-time" and --final, '
            "then change the order"
        )
    names = {function.name for function in workflow.functions}
    for gone in sorted(home.facts.updates.keys() - names):
        if _holds_events(store, gone, progress.batch):
            raise StoreError(
                f"{home.path}: events wait for update {gone!r}, which the application no longer "
                "has; put it back and run once with --final, then remove it"
            )


def _holds_events(store: Store, function: str, committed: int) -> bool:
    for number in range(store.shards):
        with store.shard(number).at(committed) as view:
            for prefix in (waiting_of(function), outbox_of(function)):
                if next(view.scan(prefix, after_prefix(prefix)), None) is not None:
                    return True
    return False
