"""The error for records that retention has removed counts them."""

from __future__ import annotations

import pytest

from millstream.kafka.offset_ranges import removed
from millstream.kafka.topic import SourceTopic


@pytest.mark.parametrize(
    ("begin", "words"),
    [(6, "1 record before it was read"), (1205, "1,200 records before they were read")],
)
def test_removed_records_are_counted(begin: int, words: str) -> None:
    """The message for one record is in the singular."""
    error = removed(SourceTopic("clicks", ()), 3, 5, begin)
    assert f"retention has removed {words}" in str(error)
