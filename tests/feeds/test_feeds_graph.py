"""The graph of an application with feeds."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.graph.words import describe
from millstream.settings.settings import resolve


def _app() -> ms.App:
    app = ms.App("social")
    app.add(ms.feeds.Feeds(), name="feeds")
    return app


def test_feeds_are_immediate_updates() -> None:
    """A reader relies on every effect of a batch's records, so no update of feeds holds events
    back, and their descriptions show no limit."""
    updates = _app().checked().updates
    assert len(updates) == 3
    assert all(update.immediate for update in updates)
    assert not any("limit" in describe(update) for update in updates)


def test_a_deployment_cannot_limit_feeds() -> None:
    """With a limit, a read could miss posts that were acknowledged."""
    with pytest.raises(ms.DefinitionError, match=r"'feeds\.producers' is not an update of app"):
        resolve(_app(), flags={"limits": {"feeds.producers": 5}})
