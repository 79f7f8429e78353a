"""Actions of an application: done for what is committed, beside its batches, and not for ever."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from actions.alert_runs import settings, visits
from actions.receiver import HANG, Receiver
from driver_runs.harness import kept_rows

import millstream as ms
from millstream.actions.overview import action_state
from millstream.driver.in_process import run
from millstream.errors import DefinitionError, RunError
from millstream.settings.settings import Settings


def alerts(on_error: Any = "dead-letter") -> ms.App:
    """Notifies of every third visit of a user."""
    app = ms.App("alerts", on_error=on_error)
    app.source("visits", key="user", ts="n", unit="s")
    app.action("notify")

    @app.update("visits", publishes="notify")
    def count(event: Any, slate: Any) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        if slate["n"] % 3 == 0:
            yield ms.emit("notify", value={"visits": slate["n"]})
        if event.value.get("poison"):
            raise ValueError("poison")

    return app


def test_nothing_is_done_for_a_batch_that_is_not_committed(tmp_path: Path) -> None:
    """Functions have asked, then the batch fails: nobody hears of it."""
    visits(tmp_path, "1.json", "aaa", poison=True)
    with Receiver() as there:
        with pytest.raises(RunError, match="poison"):
            run(alerts("fail"), settings(tmp_path, there))
        assert there.got == []
        assert action_state(tmp_path / "store", "notify").waiting == 0


def test_what_fails_is_a_dead_letter_and_the_run_ends(tmp_path: Path) -> None:
    """A run over what is there ends with all carried out or given up."""
    visits(tmp_path, "1.json", "aaabbb")
    with Receiver([404]) as there:
        run(alerts(), settings(tmp_path, there))
    state = action_state(tmp_path / "store", "notify")
    assert (state.done, state.failed, state.waiting) == (1, 1, 0)
    (letter,) = kept_rows(tmp_path / "store", "notify.failed")
    assert letter["error"] == "HTTP 404: Not Found"


def test_batches_do_not_wait_for_actions_and_a_stop_ends_both(tmp_path: Path) -> None:
    """While a receiver hangs, batches go on; a run that is stopped ends within five seconds, and
    the next start does what was left."""
    visits(tmp_path, "1.json", "aaa")
    stop, batches = threading.Event(), list[int]()
    with Receiver([HANG]) as there:
        given = settings(tmp_path, there, available_now=False, action_timeout=60_000_000)

        def report(batch: Any) -> None:
            if batch.events:
                batches.append(batch.batch)

        thread = threading.Thread(
            target=run,
            args=(alerts(), given, report),
            kwargs={"stop": stop},
        )
        thread.start()
        assert there.asked.wait(60)
        visits(tmp_path, "2.json", "bbb")
        deadline = time.monotonic() + 60
        while len(batches) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        stop.set()
        thread.join(5)
        assert not thread.is_alive()
        run(alerts(), settings(tmp_path, there))
        assert there.keys == ["a", "a", "b"]
        assert there.got[0] == there.got[1]


def test_an_action_without_an_address(tmp_path: Path) -> None:
    """The run is refused before the store is touched."""
    visits(tmp_path, "1.json", "a")
    given = Settings.of("alerts", tmp_path / "store", {"visits": f"json:{tmp_path / 'in'}"})
    with pytest.raises(DefinitionError, match="action 'notify' of app 'alerts' has no address"):
        run(alerts(), given)
    assert not (tmp_path / "store").exists()
