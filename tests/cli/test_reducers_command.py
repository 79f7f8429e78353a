"""`millstream reducers` against a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from client.live_server import LiveServer

from millstream.description import Description, SourceDescription, write_description


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveServer]:
    """A server of an application with the job `counts`."""
    with LiveServer(tmp_path / "store") as server:
        log = f"log:{server.log('counts.panes')}"
        panes = SourceDescription("counts.panes", "tree", None, None, True, log)
        told = Description("logs", "content", [panes], [], ["counts.panes"], [], {"nodes": []})
        write_description(server.made.path, told)
        yield server.start()


def test_a_number_is_told_to_the_job(live: LiveServer, millstream: Callable[..., Result]) -> None:
    """As a message of no tree, among those of the nodes."""
    done = millstream("reducers", "counts", "4", "--url", live.url)
    assert (done.exit_code, done.stdout) == (
        0,
        "counts: 4 reducers, from the first window that no node has reached\n",
    )
    assert live.records("counts.panes") == [{"tree": "", "reducers": 4}]


def test_a_job_that_is_not_there(live: LiveServer, millstream: Callable[..., Result]) -> None:
    """The nearest one is named, and nothing is sent."""
    done = millstream("reducers", "count", "4", "--url", live.url)
    assert done.exit_code == 2
    assert "there is no job 'count' with agents; did you mean 'counts'" in done.stderr
    assert live.records("counts.panes") == []


def test_a_number_that_cannot_be(live: LiveServer, millstream: Callable[..., Result]) -> None:
    """An impossible number is refused before anything is sent."""
    done = millstream("reducers", "counts", "0", "--url", live.url)
    assert done.exit_code == 2
    assert "1<=x<=1000" in done.stderr
