"""Large slates and failing sinks in GET /status."""

from __future__ import annotations

from pathlib import Path

from served import MadeStore, asked

from millstream.stores.function_counts import Large
from millstream.stores.home import held
from millstream.stores.trouble import Trouble, write_troubles


def test_the_status_names_large_slates_and_failing_sinks(tmp_path: Path) -> None:
    """The largest slate of an update; a sink that fails, since when and how, while it runs."""
    made = MadeStore(tmp_path / "store", {"count": "dict", "small": "dict"})
    made.commit(large={"count": Large("Walmart", 2_000_000, 0)})
    write_troubles(made.path, [Trouble("sink 'hot'", 17, "sink out: disk full")])
    with asked(made.path) as client:
        stopped = client.get("/status").json()
        assert stopped["troubles"] == [], "nothing fails in what does not run"
        largest = {one["name"]: one["largest"] for one in stopped["functions"]}
        assert largest == {"count": {"key": "Walmart", "bytes": 2_000_000}, "small": None}
        with held(made.path):
            assert client.get("/status").json()["troubles"] == [
                {"name": "sink 'hot'", "since": 17, "error": "sink out: disk full"}
            ]
            write_troubles(made.path, [])
            assert client.get("/status").json()["troubles"] == []
