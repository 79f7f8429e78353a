"""The options for reading logs are checked when they are set, not when every line fails."""

from __future__ import annotations

from typing import Any

import pytest

import millstream as ms
from millstream.windows import Logs


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pattern": r"(?P<time>\S+)", "ts": "tiem"}, "one of the pattern's groups, time; got"),
        ({"format": "text", "ts": "time"}, "ts must be one of a line without a pattern, line"),
        ({"ts": "t", "time_format": "%d/%Q"}, "directives of strptime.*got '%d/%Q'"),
        ({"ts": "t", "time_format": "%d/%b/%Y %"}, "directives of strptime"),
        ({"ts": "t", "time_format": "%s"}, "directives of strptime"),
    ],
)
def test_what_cannot_be_read_is_refused(wrong: dict[str, Any], said: str) -> None:
    """The error says what is expected and what was given."""
    with pytest.raises(ms.DefinitionError, match=said):
        Logs(**wrong)


@pytest.mark.parametrize(
    "right",
    [
        {"pattern": r"(?P<time>\S+) (?P<line>.*)", "ts": "time"},
        {"pattern": r"(?P<time>\S+)", "ts": len},
        {"format": "text", "ts": "line"},
        {"ts": "at.time", "unit": "s"},
        {"ts": "t", "time_format": "%d/%b/%Y:%H:%M:%S %z"},
        {"ts": "t", "time_format": "%b %d %H:%M:%S"},
        {"ts": "t", "time_format": "%a %d %B %y %I:%M:%S.%f %p %Z, day %j, 100%%"},
    ],
)
def test_what_can_be_read_is_taken(right: dict[str, Any]) -> None:
    """Fields of JSON may be anything."""
    assert Logs(**right).ts == right["ts"]
