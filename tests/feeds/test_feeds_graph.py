"""The graph of an application with feeds."""

from __future__ import annotations

import millstream as ms
from millstream.graph.words import describe


def test_a_limit_that_is_none_is_not_told():
    """Feeds hold back by themselves; the number that says so is nobody's business."""
    app = ms.App("social")
    app.add(ms.feeds.Feeds(), name="feeds")
    told = [describe(function) for function in app.checked().functions]
    assert any("update" in words for words in told)
    assert not any("limit" in words for words in told)
