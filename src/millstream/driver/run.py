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
from millstream.driver.inputs.dead_input import dead_sentence, dead_share
from millstream.driver.inputs.followed_logs import LogFollowing
from millstream.driver.report import RunSummary
from millstream.driver.runner import OpenRunner, Runner
from millstream.driver.startup.addresses import check_places
from millstream.driver.startup.leadership import stand_by
from millstream.driver.startup.start import start
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
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """Runs an application until it is done (`available_now`), stopped, or fails with RunError.

    Ctrl-C, or setting `stop`, ends it after the current batch. `ready` is called when the store
    exists and this run holds it, while the runner is still starting. `say` is called with messages
    for the user.
    """
    began = time.perf_counter()
    workflow = settings.applied(app.checked())
    check_places(settings, workflow.outputs)
    places = addresses_of(app.name, workflow.actions, settings.actions)
    say, stop = say or _say_nothing, stop or threading.Event()
    with held(settings.store), ExitStack() as open_:
        starting = _Starting(open_runner)
        if settings.standby:
            open_.enter_context(starting)  # so that it is ready when this standby takes over
            if not _stood_by(settings, stop, say, starting):
                return RunSummary(0, 0, 0, 0, time.perf_counter() - began, 0, 0, 0, 0, False, None)
        home = open_home(settings, workflow.slate_kinds)
        if not settings.standby:
            open_.enter_context(starting)
        if ready is not None:
            ready()
        logs = open_logs(home)
        if logs is not None:
            open_.callback(logs.close)
        patience = settings.action_patience
        acting = carried_out(
            home,
            places,
            policy=Policy(settings.action_tries, patience and patience / 1e6),
            timeout=settings.action_timeout / 1e6,
            stop=stop,
            logs=logs,
        )
        actions = open_.enter_context(acting)
        if settings.check_store and home.place is None:
            with start_checks(home) as checks:
                finish_checks(checks)
        started = open_.enter_context(start(home, workflow, settings, say, stop, logs))
        if logs is not None and not settings.available_now:
            open_.enter_context(LogFollowing(logs, started.planner.streams, say))
        before = started.progress
        driver = Driver(home, workflow, settings, started, report, say, stop)
        actions.start()
        driver.run(starting.runner())
        if settings.available_now:
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
        after.horizon if settings.final and workflow.order == "event-time" else None,
        total.retried - earlier.retried,
        dead_sentence(*dead_share(before, after), driver.last_error),
    )


def _stood_by(
    settings: Settings, stop: threading.Event, say: Callable[[str], None], starting: _Starting
) -> bool:
    """Waits until there is no leader; returns False if the run was stopped first."""
    place, lease = place_at(settings.place), settings.lease / 1e6
    if not stand_by(place, lease, stop, say, started=starting.is_done):
        return False
    say("the leader is gone: taking over")
    return True


def open_home(settings: Settings, updates: dict[str, str]) -> Home:
    """Opens the store of a run, or the working folder of a store in a place."""
    if not settings.place:
        return Home.make(settings.store, settings.app, settings.shards, updates)
    place = place_at(settings.place)
    return SharedHome.take(
        place, settings.store, settings.app, settings.shards, updates, settings.cache
    )


def open_logs(home: Home) -> PlaceLogs | None:
    """Opens the logs of a store in a place; None if the store is a folder."""
    return None if home.place is None else PlaceLogs(home.place, home.path / "logs")


def _say_nothing(sentence: str) -> None:
    pass


class _Starting:
    """Starts a runner in a background thread, during the checks and the recovery."""

    def __init__(self, open_runner: OpenRunner) -> None:
        self._open = open_runner
        self._runner: Runner | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._start, name="millstream-start", daemon=True)
        self._abandoned = False
        self._lock = threading.Lock()

    def __enter__(self) -> _Starting:
        self._thread.start()
        return self

    def _start(self) -> None:
        try:
            runner = self._open()
        except BaseException as error:
            self._error = error
            return
        with self._lock:
            self._runner = runner
            abandoned = self._abandoned
        if abandoned:
            runner.close()

    def is_done(self) -> bool:
        """True if the runner has started; raises the error of its start, if any."""
        if self._error is not None:
            raise self._error
        return self._runner is not None

    def runner(self) -> Runner:
        """Waits for the runner and returns it; raises the error of its start, if any."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._runner is not None
        return self._runner

    def close(self) -> None:
        """Closes the runner; one that is still starting is closed as soon as it has started."""
        with self._lock:
            self._abandoned = True
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __exit__(self, *exc: object) -> None:
        self.close()
