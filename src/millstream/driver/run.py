"""An application from its start to its end, on whatever runner it is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from millstream.actions.address import addresses_of
from millstream.actions.attempt import Policy
from millstream.actions.running import carried_out
from millstream.driver.addresses import check_places
from millstream.driver.driver import Driver, OnReport
from millstream.driver.report import RunSummary
from millstream.driver.runner import OpenRunner, Runner
from millstream.driver.start import start
from millstream.model.app import App
from millstream.settings import Settings
from millstream.stores.home import Home, held
from millstream.stores.shard_checks import finish_checks, start_checks


def run(
    app: App,
    settings: Settings,
    open_runner: OpenRunner,
    report: OnReport | None = None,
    *,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """Run an application until it is done (`available_now`), stopped, or fails with RunError.

    Ctrl-C, or setting `stop`, ends it after the batch that is running. `ready` is called when the
    store is there and held by this run, while the runner starts; `say` with what its owner should
    know.
    """
    began = time.perf_counter()
    workflow = settings.applied(app.checked())
    check_places(settings, workflow.outputs)
    places = addresses_of(app.name, workflow.actions, settings.actions)
    with held(settings.store), ExitStack() as open_:
        home = Home.make(settings.store, app.name, settings.shards, workflow.slate_kinds)
        starting = open_.enter_context(_Starting(open_runner))
        if ready is not None:
            ready()
        patience = settings.action_patience
        acting = carried_out(
            home,
            places,
            policy=Policy(settings.action_tries, patience and patience / 1e6),
            timeout=settings.action_timeout / 1e6,
            stop=stop,
        )
        actions = open_.enter_context(acting)
        if settings.check_store:
            with start_checks(home) as checks:
                finish_checks(checks)
        say, stop = say or _say_nothing, stop or threading.Event()
        started = open_.enter_context(start(home, workflow, settings, say, stop))
        before = started.progress
        driver = Driver(home, workflow, settings, started, report, say, stop)
        actions.start()
        driver.run(starting.runner())
        if settings.available_now:
            starting.close()
            actions.finish()
    after = driver.progress
    return RunSummary(
        driver.batches,
        after.events - before.events,
        after.late - before.late,
        after.dead_letters - before.dead_letters,
        time.perf_counter() - began,
        after.waiting,
        sum(after.dropped.values()) - sum(before.dropped.values()),
        sum(after.diverted.values()) - sum(before.diverted.values()),
        sum(after.evicted.values()) - sum(before.evicted.values()),
        after.least_timer is not None,
        after.horizon if settings.final and workflow.order == "event-time" else None,
    )


def _say_nothing(sentence: str) -> None:
    pass


class _Starting:
    """A runner that starts in a thread of its own, beside the checks and the recovery."""

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

    def runner(self) -> Runner:
        """The runner, once it is there; raises what its start raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._runner is not None
        return self._runner

    def close(self) -> None:
        """Let go of the runner; one that is still starting closes when it is there."""
        with self._lock:
            self._abandoned = True
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __exit__(self, *exc: object) -> None:
        self.close()
