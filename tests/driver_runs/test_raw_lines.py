"""Lines that an update reads right at its source come to what the reference makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driver_runs.raw_lines import check_lines

import millstream as ms

ODD_NAMES = ('a"b', "a\\b", "a\tb", "\x00", "é", "a b", "class", "__class__", "key", "ts", "")


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_field_of_any_name(name: str, logs: bool) -> None:
    """The field of the key, or of the time, may have any name that JSON can write."""
    for key, ts in ((name, "at"), ("at", name)):
        app = ms.App("named")
        app.source("s", key=key, ts=ts, unit="us", ahead=None)

        @app.update("s")
        def count(event: ms.Event, slate: dict[str, Any]) -> None:
            slate["n"] = slate.get("n", 0) + 1

        lines = [json.dumps({key: "k", ts: number}).encode() for number in range(3)]
        assert check_lines(app, lines, logs=logs).slates["count", "k"][1] == b'{"n":3}'
