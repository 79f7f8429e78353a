"""The defaults of a server are the same in every place that states them."""

from __future__ import annotations

from pathlib import Path

from millstream import client
from millstream.cli import which_server
from millstream.server.options import ServerOptions
from millstream.service.server_settings import options_of
from millstream.settings.settings import Settings


def test_the_settings_and_the_server_have_the_same_defaults(tmp_path: Path) -> None:
    """A server that a run without settings starts has the same options as one without options."""
    assert options_of(Settings.of("retail", tmp_path), {}) == ServerOptions(tmp_path)


def test_a_server_is_looked_for_where_it_listens(tmp_path: Path) -> None:
    """The commands and the client ask at the address that a server has by default."""
    options = ServerOptions(tmp_path)
    where = f"http://{options.host}:{options.port}"
    assert which_server.DEFAULT_URL == client.DEFAULT_URL == where
