"""Actions of an application whose Spark workers are killed: done once.

What else there is to say of them needs no Spark, and is in driver_runs/test_action_runs.py.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from actions.alert_runs import settings, visits
from actions.receiver import Receiver
from driver_runs.harness import kept_rows

import millstream as ms
from millstream.actions.overview import action_state
from millstream.spark.runner import run

pytestmark = pytest.mark.spark


def alerts(folder: Path) -> ms.App:
    """Notifies of every third visit of a user; the first try of a batch with a killer dies."""
    app = ms.App("alerts")
    app.source("visits", key="user", ts="n", unit="s")
    app.action("notify")

    @app.update("visits", publishes="notify")
    def count(event: Any, slate: Any) -> Any:
        slate["n"] = slate.get("n", 0) + 1
        if slate["n"] % 3 == 0:
            yield ms.emit("notify", value={"visits": slate["n"]})
        if event.value.get("kill") and not (folder / "tried").exists():
            (folder / "tried").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return app


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_a_task_that_is_tried_again_does_not_act_twice(
    spark: Any, tmp_path: Path, lane: Any
) -> None:
    """A worker is killed after its functions have asked: the batch is tried again, each action is
    done once, and in the order of the stream's log; a second run does what is new."""
    visits(tmp_path, "1.json", "abcabcabc", kill=True)
    with Receiver() as there:
        run(alerts(tmp_path), settings(tmp_path, there, lane=lane), context=spark)
        assert (tmp_path / "tried").exists()
        assert sorted(there.keys) == ["a", "b", "c"]
        assert there.keys == [row["key"] for row in kept_rows(tmp_path / "store", "notify")]
        assert all(got.body["value"] == {"visits": 3} for got in there.got)
        visits(tmp_path, "2.json", "aaa")
        run(alerts(tmp_path), settings(tmp_path, there, lane=lane), context=spark)
        assert [got.body["value"] for got in there.got[3:]] == [{"visits": 6}]
        assert len({got.id for got in there.got}) == 4
    assert action_state(tmp_path / "store", "notify").done == 4
