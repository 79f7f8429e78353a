"""How peers are measured: what counts as processed, and when."""

from __future__ import annotations

from pathlib import Path

from bench.peers.counting import PEERS, followed
from bench.peers.environments import FOLDER
from bench.peers.progress import Progress, processed


def test_records_that_two_processes_had_count_once(tmp_path: Path) -> None:
    """After a rebalance a partition is read again by another process; how far it got is the
    furthest of both. A process that has not begun has nothing."""
    paths = [tmp_path / name for name in ("a", "b", "none")]
    first, second = Progress(paths[0]), Progress(paths[1])
    first.slots[0], first.slots[1] = 10, 5
    second.slots[0], second.slots[2] = 4, 7
    assert processed(paths) == 22


def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    """It ends with the last record, or once it was measured for long enough."""
    progress = Progress(tmp_path / "a")
    progress.slots[0] = 100
    assert followed([tmp_path / "a"], 100, 20, 60.0)[-1][0] == 100
    progress.slots[0] = 50
    assert followed([tmp_path / "a"], 100, 20, 0.0)[-1][0] == 50


def test_each_peer_has_an_application_and_an_environment() -> None:
    """Pinned, so that the figures can be had again."""
    for peer in PEERS:
        assert (FOLDER / f"{peer.name}_count.py").exists()
        wanted = (FOLDER / f"{peer.name}.txt").read_text().split()
        assert wanted
        assert all("==" in line for line in wanted)
