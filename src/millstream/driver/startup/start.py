"""Prepares a store on disk so that a driver can run batches on it.

Everything that could prevent a start is checked first: shards, records, the positions in the
sources, the output logs. Only then is the store changed. Every change can be repeated, so a start
that was interrupted at any point is simply made again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from millstream.driver.batch_plan.planner import Planner
from millstream.driver.durability.disk_flush import Flushing, take_back
from millstream.driver.durability.shared_flush import SharedFlushing
from millstream.driver.outputs.output_sinks import change_columns, slate_types, value_types
from millstream.driver.outputs.publisher import Publisher
from millstream.driver.outputs.sink_retry import Stopped, sink_retry_of
from millstream.driver.startup.addresses import addresses
from millstream.driver.startup.change_plan import ChangePlan, plan_changes, refusal, rename_counts
from millstream.driver.startup.compatibility import check_continues, lasting
from millstream.driver.startup.format_upgrade import upgrade
from millstream.driver.startup.leadership import Leading
from millstream.driver.startup.recovery import check_recoverable
from millstream.engine.plan import Plan
from millstream.errors import StoreError
from millstream.letters.retry_log import RETRIED
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.stream_logs import PlaceLogs
from millstream.model.workflow import Workflow
from millstream.settings.settings import Settings
from millstream.sources.address import LOG
from millstream.stores.home import Home
from millstream.stores.progress import Progress, decoded
from millstream.stores.shared.shared_home import SharedHome
from millstream.stores.soft import read_committed

START_SAMPLE = 1_000
"""The most slates of each shard that a start reads of an update whose slates have a new form."""


@dataclass(frozen=True, slots=True)
class Started:
    """A recovered store, with its planner, publisher and flushing. A context manager."""

    progress: Progress
    """The last committed batch, after which the next one is planned."""
    epoch: int
    plan: Plan
    planner: Planner
    publisher: Publisher
    flushing: Flushing
    _open: ExitStack

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._open.__exit__(*exc)


def start(
    home: Home,
    workflow: Workflow,
    settings: Settings,
    say: Callable[[str], None],
    stop: threading.Event,
    logs: PlaceLogs | None = None,
    *,
    take_in: bool = True,
) -> Started:
    """Rolls every shard back to the last committed batch, and brings the sinks up to it.

    Raises StoreError, without changing anything, if that is not possible. `say` is called with
    messages on what was done; `stop` ends the wait for a sink. `logs`: set if the store is in a
    place. `take_in`: False to leave the sources alone, for a caller that plans no batches.
    """
    with ExitStack() as opened:
        if home.place is None:
            check_recoverable(home)
        committed = read_committed(home.path)
        sources = addresses(settings.addresses.sources, home.path)
        taken_in = sources if take_in else {}
        planner = Planner(home, workflow, settings.batches, taken_in, say, logs=logs)
        opened.callback(planner.close)
        planner.check(committed)
        # Sinks identify batches by this; in a store of format 2 it is the id of Spark's query.
        query = committed.query or home.facts.id
        publisher = Publisher(
            home,
            query,
            addresses(settings.addresses.sinks, home.path),
            Retention(settings.logs.retain_age, settings.logs.retain_bytes),
            {name for name, address in sources.items() if address.format == LOG},
            sink_retry_of(settings, lambda seconds: not stop.wait(seconds), say),
            logs,
            change_columns(workflow),
            slate_types(workflow),
            {
                stream.name: stream.order_by
                for stream in workflow.declared
                if stream.order_by is not None
            },
            value_types(workflow),
        )
        opened.callback(publisher.close)
        publisher.check(workflow.outputs, committed)

        _say_if(say, take_back(home))
        progress = decoded(home.read_progress())
        progress.query = query
        flushing = _flushing(home, settings.storage.flush)
        opened.callback(flushing.close)
        planner.register(flushing.durable(progress))
        changes = _changes(home, workflow, settings, progress, flushing, say)
        epoch = home.take_over(progress)
        if home.place is not None:  # from now on: the rest may have to wait for a sink
            opened.enter_context(Leading(home.place, uuid4().hex))
        flushing.recover(epoch, progress)
        _say_if(say, upgrade(home, progress))
        retired = (*workflow.retired, *changes.orphaned)
        home.know_slates(workflow.slate_kinds, changes.shapes, changes.renamed, retired)
        rename_counts(progress, workflow)
        home.number_streams(workflow.streams)
        stored = home.facts.stored
        placed = [stored(function.name) for layer in workflow.layers for function in layer]
        home.know_functions(placed)
        home.know_parts(lasting(workflow.parts))
        numbered = tuple(home.facts.streams)
        outputs, stored_as = frozenset(workflow.outputs), dict(home.facts.stored_as)
        plan = Plan(workflow, home.facts.shards, outputs, numbered, stored_as)
        try:
            flushing.settle(progress, publisher)
        except Stopped as stopped:
            raise stopped.error from None
        return Started(progress, epoch, plan, planner, publisher, flushing, opened.pop_all())


def _changes(
    home: Home,
    workflow: Workflow,
    settings: Settings,
    progress: Progress,
    flushing: Flushing,
    say: Callable[[str], None],
) -> ChangePlan:
    """Returns the consequences of the current application for the store.

    Raises StoreError if stored data would be lost and the user has not accepted that.
    """
    store, unread = flushing.open(), unread_records(home, workflow, progress)
    if progress.batch < 0:
        return plan_changes(workflow, home.facts, progress, store, sample=0)
    changes = plan_changes(
        workflow, home.facts, progress, store, sample=START_SAMPLE, trust=True, unread=unread
    )
    check_continues(workflow, home, store, progress, changes.renamed)
    losses = changes.losses(settings.storage.accept_loss)
    if losses:
        raise StoreError(refusal(home.name, losses))
    for consequence in changes.consequences:
        if consequence.loss:
            say(f"accepted: {consequence.subject} {consequence.name!r}: {consequence.text}")
    return changes.accepted(workflow)


def unread_records(home: Home, workflow: Workflow, progress: Progress) -> dict[str, int]:
    """Counts unread records in the logs of sources that the application no longer has."""
    unread = {}
    names = {source.name for source in workflow.sources}
    for name, source in progress.sources.items():
        if (
            name not in {*names, RETRIED}
            and source.position is not None
            and home.log_of(name).is_dir()
        ):
            with closing(LogReader(home.log_of(name))) as reader:
                unread[name] = max(0, reader.end[1] - source.position[1])
    return unread


def _flushing(home: Home, interval: int | None) -> Flushing:
    return SharedFlushing(home) if isinstance(home, SharedHome) else Flushing(home, interval)


def _say_if(say: Callable[[str], None], sentence: str | None) -> None:
    if sentence is not None:
        say(sentence)
