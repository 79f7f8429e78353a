"""Actions in GET /status and GET /metrics of a real server, which runs none of them."""

from __future__ import annotations

from pathlib import Path

from asking import STARTED, Store, Told
from server.served import asked

from millstream.actions.attempt import Outcome


def test_a_server_tells_how_actions_are(tmp_path: Path) -> None:
    """What is done, waits, has failed and is being retried, as of now, without the application;
    files that are damaged are said to be, and take nothing else down."""
    store = Store(tmp_path)
    store.home.write_progress({"batch": 0})
    again, never = Outcome("again", "HTTP 503: busy"), Outcome("never", "HTTP 404")
    worker = store.worker(Told(Outcome("done"), never, again))
    with asked(store.path) as client:
        (found,) = client.get("/status").json()["actions"]
        assert (found["name"], found["done"], found["waiting"]) == ("notify", 0, 0)
        store.ask("a", "b", "c", "d")
        for _ in range(3):
            worker.step()
        (found,) = client.get("/status").json()["actions"]
        assert found == {
            "name": "notify",
            "address": "stderr",
            "done": 1,
            "waiting": 2,
            "failed": 1,
            "dead_letters": 1,
            "missed": 0,
            "retrying": {"since": STARTED, "tries": 1, "error": "HTTP 503: busy"},
            "trouble": None,
        }
        text = client.get("/metrics").text
        assert 'millstream_action_done_total{action="notify"} 1.0' in text
        assert 'millstream_action_waiting{action="notify"} 2.0' in text
        worker.close()
        (store.path / "actions" / "notify").write_bytes(b"00000000 {}\n")
        (found,) = client.get("/status").json()["actions"]
        assert "actions/notify" in found["trouble"]
