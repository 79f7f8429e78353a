"""From a store as it lies on disk to one that a driver can run batches on.

Everything that could refuse a start is asked first: shards, records, the positions in the sources,
the output logs. Only then is the store changed. What is changed can be done again, so a start that
is cut off anywhere is simply made once more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from millstream.driver.addresses import addresses
from millstream.driver.compatibility import check_continues, lasting
from millstream.driver.flush import Flushing, take_back
from millstream.driver.format_upgrade import upgrade
from millstream.driver.planner import Planner
from millstream.driver.publisher import Publisher
from millstream.driver.recovery import check_recoverable
from millstream.driver.sink_retry import Stopped, sink_retry_of
from millstream.engine.plan import Plan
from millstream.log.retention import Retention
from millstream.model.workflow import Workflow
from millstream.settings import Settings
from millstream.sources.address import LOG
from millstream.stores.home import Home
from millstream.stores.progress import Progress, decoded
from millstream.stores.soft import read_committed


@dataclass(frozen=True, slots=True)
class Started:
    """A recovered store, and what belongs to it. A context manager."""

    progress: Progress
    """The last committed batch, from which the next one is planned."""
    epoch: int
    plan: Plan
    planner: Planner
    publisher: Publisher
    flushing: Flushing
    _open: ExitStack

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()


def start(
    home: Home,
    workflow: Workflow,
    settings: Settings,
    say: Callable[[str], None],
    stop: threading.Event,
) -> Started:
    """Bring every shard back to the last committed batch, and the sinks up to it.

    StoreError, and nothing is changed, if that cannot be. `say` is told what was done; `stop` ends
    the waiting for a sink.
    """
    with ExitStack() as opened:
        check_recoverable(home)
        committed = read_committed(home.path)
        sources = addresses(settings.sources, home.path)
        planner = Planner(home, workflow, settings, sources, say)
        opened.callback(planner.close)
        planner.check(committed)
        # What the sinks know its batches by; of a store of format 2, the id of Spark's query.
        query = committed.query or home.facts.id
        publisher = Publisher(
            home,
            query,
            addresses(settings.sinks, home.path),
            Retention(settings.retain_age, settings.retain_bytes),
            {name for name, address in sources.items() if address.format == LOG},
            sink_retry_of(settings, lambda seconds: not stop.wait(seconds), say),
        )
        opened.callback(publisher.close)
        publisher.check(workflow.outputs, committed)

        _say_if(say, take_back(home))
        progress = decoded(home.read_progress())
        progress.query = query
        flushing = Flushing(home, settings.flush)
        opened.callback(flushing.close)
        planner.register(flushing.durable(progress))
        check_continues(workflow, home, flushing.open(), progress)
        epoch = home.raise_epoch()
        flushing.recover(epoch, progress)
        _say_if(say, upgrade(home, progress))
        home.number_streams(workflow.streams)
        home.know_functions([function.name for layer in workflow.layers for function in layer])
        home.know_parts(lasting(workflow.parts))
        numbered = tuple(home.facts.streams)
        plan = Plan(workflow, home.facts.shards, frozenset(workflow.outputs), numbered)
        try:
            flushing.settle(progress, publisher)
        except Stopped as stopped:
            raise stopped.error from None
        return Started(progress, epoch, plan, planner, publisher, flushing, opened.pop_all())


def _say_if(say: Callable[[str], None], sentence: str | None) -> None:
    if sentence is not None:
        say(sentence)
