"""Panes in rounds: a quarter of a block first, the rest when it was read, each once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import placed, write
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from local_agent import run
from taking_root import Scoreboard

import millstream as ms
from millstream.windows.panes.message import PaneManifest
from millstream.windows.panes.pane_ledger import PaneRun, counted, put
from millstream.windows.panes.shedder import round_of
from millstream.windows.placed import PlacedJob

PANES = 8


def job(**more: Any) -> PlacedJob:
    given = {"range": f"{PANES}s", "fidelity": ms.windows.Error(0.05), "bounds": "count", **more}
    return placed(**given)


def panes(messages: list[Any], why: str | None = None) -> list[int]:
    """The panes that were sent, in order, as data or as lost for a reason."""
    mark = "lost" if why else "data"
    return [
        one["pane"]
        for one in messages
        for told in one["nodes"].values()
        if (told["mark"], told["why"]) == (mark, why)
    ]


def test_the_first_round_comes_first(tmp_path: Path) -> None:
    """The panes of a block come in the order of their rounds, and all of them come, each with the
    count of records that the log had at its end."""
    write(
        tmp_path / "app.log", *((800 + number / 2, f"w{number}") for number in range(2 * 2 * PANES))
    )
    messages, status = run(tmp_path, job())
    made = panes(messages)
    assert sorted(made) == list(range(800, 800 + 2 * PANES))
    rounds = [(pane // PANES, round_of(job().job, "web1", pane)) for pane in made]
    first = [one for one in rounds if one[0] == 100]
    assert first == sorted(first)
    assert {one["pane"]: one["nodes"]["web1"]["total"] for one in messages if one["partials"]} == {
        800 + pane: 2 * (pane + 1) for pane in range(2 * PANES)
    }
    assert (status["on_time"], status["residual"], status["deferred"]) == (32, 0, 0)


def test_what_nobody_wants_is_not_made(tmp_path: Path) -> None:
    """When the root has closed the window, its remaining panes are reported as cancelled, and
    counted."""
    write(tmp_path / "app.log", *((800 + number / 2, "w") for number in range(2 * PANES)))
    asked = [0]

    def closed(window: int) -> bool:
        asked[0] += 1
        return asked[0] > PANES + 2  # when it goes back

    messages, status = run(tmp_path, job(), closed=closed)
    made, cancelled = panes(messages), panes(messages, "cancelled")
    assert sorted(made + cancelled) == list(range(800, 800 + PANES))
    assert len(made) < PANES
    assert status["shed"] == 2 * len(cancelled)
    assert status["residual"] == 0


RECORD = st.tuples(st.integers(800, 830), st.sampled_from(["a", "b", "a b"]))


@pytest.mark.parametrize("axis", ["time", "records", "sequence"])
@settings(max_examples=examples(20), deadline=None)
@given(
    records=st.lists(RECORD, max_size=40),
    in_order=st.booleans(),
    kills=st.lists(st.integers(0, 4), max_size=3),
)
def test_killed_between_two_rounds(
    tmp_path_factory: pytest.TempPathFactory,
    axis: str,
    records: list[tuple[int, str]],
    in_order: bool,
    kills: list[int],
) -> None:
    """Whenever the agent is killed, and whatever was sent until then, each pane is accepted once,
    all records are in one count, and the root's account of the node has no residual."""
    folder = tmp_path_factory.mktemp("rounds")
    records = sorted(records) if in_order else records
    by = {
        "time": {},
        "records": {"by": "records", "range": 2 * PANES, "pane": 2},
        "sequence": {"by": "sequence", "sequence": "ts", "range": PANES, "pane": 1},
    }
    made = job(**by[axis])
    (folder / "app.log").touch()
    write(folder / "app.log", *records)
    with (folder / "app.log").open("a") as file:
        file.write("no json\n")
    for kill in kills:
        run(folder, made, puts=kill)
    messages, status = run(folder, made)
    board, runs, read = Scoreboard(), list[PaneRun](), 0
    for message in messages:
        if board.take(json.dumps(message).encode()) and message["until"] > message["pane"]:
            told = msgspec.convert(message["nodes"]["web1"], PaneManifest)
            more = put(runs, message["pane"], message["until"], told, 0)
            read += counted(told)
            assert more == counted(told)
    if not records and axis != "records":
        return  # no pane was begun
    assert read == len(records) + 1 == status["read"]
    assert status["residual"] == status["deferred"] == 0
    plain = folder / "plain"
    plain.mkdir()
    (folder / "app.log").rename(plain / "app.log")
    whole, _ = run(plain, placed(**{"range": f"{PANES}s", **by[axis]}))
    expected = Scoreboard()
    for message in whole:
        expected.take(json.dumps(message).encode())
    assert board.values == expected.values
