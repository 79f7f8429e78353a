"""Actions in GET /status and GET /metrics of a real server, which runs none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import STARTED, Store, Told
from server.served import asked

from millstream.actions.attempt import AttemptOutcome
from millstream.actions.record import retry_until
from millstream.client import Client
from millstream.errors import ClientError


def test_a_server_tells_how_actions_are(tmp_path: Path) -> None:
    """The server shows which events are done, waiting, failed or being retried, without the
    application. Damaged files are reported, and other parts keep working."""
    store = Store(tmp_path)
    store.home.write_progress({"batch": 0})
    again, never = AttemptOutcome("again", "HTTP 503: busy"), AttemptOutcome("never", "HTTP 404")
    worker = store.worker(Told(AttemptOutcome("done"), never, again))
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


def test_what_an_action_gave_up_is_read_and_put_back_over_http(tmp_path: Path) -> None:
    """Its letters are a stream, and one request puts all of them back; a dry run puts none."""
    store = Store(tmp_path)
    store.home.write_progress({"batch": 0})
    worker = store.worker(Told(*(AttemptOutcome("never", "HTTP 404") for _ in range(2))))
    store.ask("a", "b")
    for _ in range(2):
        worker.step()
    worker.close()
    with asked(store.path) as client:
        streams = {one["name"]: one for one in client.get("/streams").json()["streams"]}
        assert (streams["notify.failed"]["kind"], streams["notify.failed"]["records"]) == (
            "failed",
            2,
        )
        page = client.get("/streams/notify.failed/records?from=start").json()
        assert [(one["value"]["key"], one["value"]["error"]) for one in page["records"]] == [
            ("a", "HTTP 404"),
            ("b", "HTTP 404"),
        ]
        assert client.post("/streams/notify.failed", json={}).status_code == 404
        with Client(str(client.base_url)) as millstream:
            assert millstream.retry_action("notify", dry_run=True) == 2
            with pytest.raises(ClientError, match="there is no action 'other'"):
                millstream.retry_action("other")
        retry = "/actions/notify/retry"
        assert client.post(retry, json={"dry_run": True}).json() == {"given": 2}
        assert retry_until(store.path, "notify") == 0
        assert client.post(retry).json() == {"given": 2}
        assert retry_until(store.path, "notify") == 2
        assert client.post(retry, json={}).json() == {"given": 0}
        assert client.post(retry, json={"only": 1}).status_code == 400
        assert client.post("/actions/other/retry").status_code == 404
