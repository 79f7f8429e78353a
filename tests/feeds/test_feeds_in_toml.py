"""Feeds in an application's TOML file."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.app_file.app_file import read_app

HEAD = '[app]\nname = "social"\n\n'


def app_of(folder: Path, text: str) -> ms.App:
    path = folder / "social.toml"
    path.write_text(HEAD + text)
    return read_app(path)[0]


def test_the_same_application_as_in_python(tmp_path: Path) -> None:
    """A table of feeds builds what `app.add` builds."""
    app = ms.App("social")
    app.add(ms.feeds.Feeds(coherency="per-producer", k=3, t="2d"), name="news")
    assert app_of(tmp_path, '[feeds.news]\ncoherency = "per-producer"\nk = 3\nt = "2d"\n') == app


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[feeds.news]\ncoherence = 1\n", "coherency"),
        ('[feeds.news]\ncoherency = "globl"\n', "did you mean 'global'"),
        ("[feeds.news]\nkeep = 0\n", "keep must be a whole number from 1"),
    ],
)
def test_a_wrong_word_has_its_line(tmp_path: Path, text: str, told: str) -> None:
    """The error says the line of the table or key, and what must be."""
    with pytest.raises(ms.DefinitionError, match=told) as raised:
        app_of(tmp_path, text)
    assert "social.toml:5:" in str(raised.value)


def test_feeds_need_arrival_order() -> None:
    """A feed shows what has come."""
    app = ms.App("social", order="event-time")
    with pytest.raises(ms.DefinitionError, match="order must be 'arrival'"):
        app.add(ms.feeds.Feeds(), name="feeds")


def test_a_name_is_taken_once() -> None:
    """Two feeds under one name would be one."""
    app = ms.App("social")
    app.add(ms.feeds.Feeds(), name="feeds")
    with pytest.raises(ms.DefinitionError, match="must have a name of its own"):
        app.add(ms.feeds.Feeds(), name="feeds")
