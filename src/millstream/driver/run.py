"""Runs an application from start to end, on any runner."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from millstream.actions.action_threads import carried_out
from millstream.actions.address import addresses_of
from millstream.actions.attempt import Policy
from millstream.driver.driver import Driver, OnReport
from millstream.driver.report import RunSummary
from millstream.driver.runner import OpenRunner, Runner
from millstream.driver.startup.addresses import check_places
from millstream.driver.startup.background_start import BackgroundStart
from millstream.driver.startup.leadership import stand_by
from millstream.driver.startup.start import start
from millstream.log.logs_follower import mirrors_followed
from millstream.log.stream_logs import PlaceLogs
from millstream.model.app import AppDefinition
from millstream.places.place_address import place_at
from millstream.settings.settings import Settings
from millstream.stores.home import Home, held
from millstream.stores.integrity.shard_checks import finish_checks, start_checks
from millstream.stores.shared.shared_home import SharedHome


def run(
    app: AppDefinition,
    settings: Settings,
    open_runner: OpenRunner,
    report: OnReport | None = None,
    *,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    running: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """Runs an application until it is done (`available_now`), stopped, or fails with RunError.

    Ctrl-C, or setting `stop`, ends it after the current batch. `ready` is called when the store
    exists and this run holds it, while the runner is still starting, and `running` when it has
    started. `say` is called with messages for the user.
    """
    began = time.perf_counter()
    workflow = settings.updates.applied(app.checked())
    check_places(settings, workflow.outputs)
    places = addresses_of(app.name, workflow.actions, settings.addresses.actions)
    say, stop = say or _say_nothing, stop or threading.Event()
    with held(settings.storage.store), ExitStack() as open_:
        starting = BackgroundStart(open_runner, lambda runner: runner.close())
        if settings.storage.standby:
            open_.enter_context(starting)  # so that it is ready when this standby takes over
            if not _stood_by(settings, stop, say, starting):
                return RunSummary(0, 0, 0, 0, time.perf_counter() - began, 0, 0, 0, 0, False, None)
        home = open_home(settings, workflow.slate_kinds)
        if not settings.storage.standby:
            open_.enter_context(starting)
        if ready is not None:
            ready()
        logs = open_logs(home)
        if logs is not None:
            open_.callback(logs.close)
        delivery = settings.delivery
        patience = delivery.action_patience
        acting = carried_out(
            home,
            places,
            policy=Policy(delivery.action_tries, patience and patience / 1e6),
            timeout=delivery.action_timeout / 1e6,
            stop=stop,
            logs=logs,
        )
        actions = open_.enter_context(acting)
        if settings.storage.check_store and home.place is None:
            with start_checks(home) as checks:
                finish_checks(checks)
        started = open_.enter_context(start(home, workflow, settings, say, stop, logs))
        if logs is not None and not settings.batches.available_now:
            open_.enter_context(mirrors_followed(logs, started.planner.streams, say))
        before = started.progress
        driver = Driver(home, workflow, settings.batches, started, report, say, stop)
        actions.start()
        runner = starting.result()
        if running is not None:
            running()
        driver.run(runner)
        if settings.batches.available_now:
            starting.close()
            actions.finish()
    after = driver.progress
    earlier, total = before.total(), after.total()
    return RunSummary(
        driver.batches,
        after.events - before.events,
        after.late - before.late,
        after.dead_letters - before.dead_letters,
        time.perf_counter() - began,
        after.waiting,
        total.dropped - earlier.dropped,
        total.diverted - earlier.diverted,
        total.evicted - earlier.evicted,
        after.pending.least_timer is not None,
        after.horizon if settings.batches.final and workflow.order == "event-time" else None,
        total.retried - earlier.retried,
        driver.dead_input(before),
    )


def _stood_by(
    settings: Settings,
    stop: threading.Event,
    say: Callable[[str], None],
    starting: BackgroundStart[Runner],
) -> bool:
    """Waits until there is no leader; returns False if the run was stopped first."""
    place, lease = place_at(settings.storage.place), settings.storage.lease / 1e6
    if not stand_by(place, lease, stop, say, started=starting.is_done):
        return False
    say("the leader is gone: taking over")
    return True


def open_home(settings: Settings, updates: dict[str, str]) -> Home:
    """Opens the store of a run, or the working folder of a store in a place."""
    app, storage = settings.app, settings.storage
    if not storage.place:
        return Home.make(storage.store, app, storage.shards, updates)
    place = place_at(storage.place)
    return SharedHome.take(place, storage.store, app, storage.shards, updates, storage.cache)


def open_logs(home: Home) -> PlaceLogs | None:
    """Opens the logs of a store in a place; None if the store is a folder."""
    return None if home.place is None else PlaceLogs(home.place, home.path / "logs")


def _say_nothing(sentence: str) -> None:
    pass
